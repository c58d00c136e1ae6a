// Lesson 18: the ring gather through two buffers, with a slow device: who waits for whom, what is overwritten too soon.
(() => {
  const { range, choice, COLORS } = moving;
  const N = 8;
  const turn = (i) => ((i % N) + N) % N;

  // The lesson's kernel `gather`, line by line. A place in memory is [name, index]. What comes into a buffer has a
  // number, 0 the device's own piece, k + 1 what arrives in round k: a copy says which it `reads`, or `writes`.
  function* gather(me, free) {
    yield { is: "signal", of: "barrier", to: turn(me - 1) };
    yield { is: "wait", of: "barrier" };
    yield { is: "copy", from: ["x", 0], into: ["buffers", 0], to: me, told: "local", writes: 0 };
    yield { is: "wait", of: "local" };
    yield { is: "copy", from: ["x", 0], into: ["o", me], to: me, told: "local" };
    yield { is: "wait", of: "local" };
    for (let k = 0; k < N - 1; k++) {
      const [here, there] = [k % 2, (k + 1) % 2];
      if (free && k > 0) yield { is: "wait", of: "free" };
      const [from, into, to] = [["buffers", here], ["buffers", there], turn(me + 1)];
      yield { is: "copy", from, into, to, sent: `sent ${here}`, told: `arrived ${there}`, reads: k, writes: k + 1 };
      yield { is: "wait", of: `sent ${here}` };
      yield { is: "wait", of: `arrived ${there}` };
      yield { is: "copy", from: into, into: ["o", turn(me - k - 1)], to: me, told: "local", reads: k + 1 };
      yield { is: "wait", of: "local" };
      if (free && k < N - 2) yield { is: "signal", of: "free", to: turn(me - 1) };
    }
  }

  // As utils/count/copies.py: a copy to another device takes 4 ticks, a signal 1, a copy inside a device 1, or `ticks`
  // inside the slow one. A copy reads its source and writes its target when it ends.
  const play = (slow, ticks, free) => {
    const runs = [...Array(N).keys()].map((me) => gather(me, free));
    const memory = runs.map((_, me) => ({ x: [me], o: Array(N).fill(null), buffers: [null, null] }));
    const counts = {};
    const waiting = {};
    const [events, lost] = [[], []]; // lost: overwritten in a buffer before it had been read as often as it should
    const read = runs.map(() => Array(N).fill(0));
    const reads = (k) => (k > 0 && k < N - 1 ? 2 : 1); // copied out, sent on; the first is only sent, the last copied
    const queue = []; // of [tick, what to do], in the order in which it was put there
    let now = 0;
    const at = (tick, act) => {
      const later = queue.findIndex(([other]) => other > tick);
      queue.splice(later < 0 ? queue.length : later, 0, [tick, act]);
    };
    const give = (device, of, source) => {
      const key = `${device} ${of}`;
      counts[key] = (counts[key] ?? 0) + 1;
      if (waiting[device]?.key !== key) return;
      const { since } = waiting[device];
      delete waiting[device];
      counts[key]--;
      if (now > since) events.push({ is: "wait", device, start: since, end: now, other: source });
      goOn(device);
    };
    const finish = (device, { from, into, to, sent, told, reads: old, writes }) => {
      if (old !== undefined) read[device][old]++;
      if (writes > 1 && read[to][writes - 2] < reads(writes - 2)) lost.push({ device: to, tick: now });
      memory[to][into[0]][into[1]] = memory[device][from[0]][from[1]];
      give(to, told, device);
      if (sent) give(device, sent, device);
    };
    const goOn = (device) => {
      for (let step = runs[device].next(); !step.done; step = runs[device].next()) {
        const asked = step.value;
        if (asked.is === "copy") {
          const end = now + (asked.sent ? 4 : device === slow ? ticks : 1);
          if (asked.sent) events.push({ is: "send", device, start: now, end, other: asked.to });
          at(end, () => finish(device, asked));
        } else if (asked.is === "signal") at(now + 1, () => give(asked.to, asked.of, device));
        else {
          const key = `${device} ${asked.of}`;
          if (!counts[key]) return void (waiting[device] = { key, since: now });
          counts[key]--;
        }
      }
    };
    for (let device = 0; device < N; device++) at(0, () => goOn(device));
    while (queue.length) {
      const [tick, act] = queue.shift();
      now = tick;
      act();
    }
    events.sort((a, b) => a.start - b.start || a.device - b.device || a.end - b.end);
    const wrong = memory.flatMap(({ o }, device) => (o.every((piece, place) => piece === place) ? [] : [device]));
    return { events, lost, wrong, end: Math.max(...events.map((event) => event.end)) };
  };
  const waited = (events, device) => {
    const waits = events.filter((event) => event.is === "wait" && event.device === device);
    const total = waits.reduce((sum, { start, end }) => sum + end - start, 0);
    const longer = (most, event) => (event.end - event.start > most.end - most.start ? event : most);
    const { other, start, end } = waits.reduce(longer);
    const whom = other === device ? "its own copy" : `device ${other}`;
    return `waits ${total} ticks, longest for ${whom}, from ${start} to ${end}`;
  };

  moving.picture("waits", {
    title: "Try it: make a device slow",
    controls: () => ({
      kernel: choice("kernel", ["two buffers and free", "two buffers"]),
      slow: range("slow device", 0, N - 1, 3),
      ticks: range("ticks of a copy inside it", 1, 8, 8),
    }),
    draw({ kernel, slow, ticks }, canvas) {
      const free = kernel === "two buffers and free";
      const { events, lost, wrong, end } = play(slow, ticks, free);
      const [left, right, top, row] = [54, 44, 24, 36];
      const tick = (canvas.width - left - right) / play(slow, 8, true).end; // one scale for all settings
      const x = (when) => left + when * tick;
      const small = { fontSize: 12 };
      canvas.text(left - 8, 10, "device", { textAnchor: "end", ...small });
      canvas.text(canvas.width, 10, "ends", { textAnchor: "end", ...small });
      const foot = top + N * row;
      for (let when = 0; x(when) < canvas.width - right; when += 20) {
        canvas.line([[x(when), top - 2], [x(when), foot + 4]], "faint", { strokeWidth: 1 });
        canvas.text(x(when), foot + 14, when, small);
      }
      canvas.text(canvas.width, foot + 14, "ticks", { textAnchor: "end", ...small });
      for (let device = 0; device < N; device++) {
        const y = top + device * row;
        const late = device === slow && ticks > 1;
        canvas.text(left - 8, y + 9, device, { textAnchor: "end", fontWeight: late ? 700 : 400 });
        if (late) canvas.text(left - 8, y + 24, "slow", { textAnchor: "end", ...small });
        const held = wrong.includes(device) ? ["wrong", 700] : ["right", 400];
        canvas.text(canvas.width, y + 9, held[0], { textAnchor: "end", fontSize: 12, fontWeight: held[1] });
      }
      for (const { is, device, start, end, other } of events) {
        const y = top + device * row;
        const long = (end - start) * tick;
        const [high, fill, down] = is === "send" ? [14, COLORS[1], 18] : [17, "faint", 0];
        const own = is === "wait" && other === device; // paler: nobody holds it up
        canvas.rect(x(start), y + down, long - 0.8, high, fill, own ? { fillOpacity: 0.45 } : {});
        const [words, room] = is === "send" ? [`→ ${other}`, 22] : own ? ["own", 26] : [`for ${other}`, 34];
        const ink = is === "send" ? "#000" : "ink";
        const said = long > room ? words : is === "wait" && !own && long > 11 ? other : "";
        const middle = x(start) + long / 2;
        const crossed = own && lost.some((cross) => cross.device === device && Math.abs(x(cross.tick) - middle) < 20);
        if (said !== "" && !crossed) canvas.text(middle, y + down + high / 2 + 0.5, said, { fontSize: 11, fill: ink });
      }
      for (const { device, tick: when } of lost) {
        const [u, v] = [x(when), top + device * row + 9];
        for (const s of [1, -1]) canvas.line([[u - 5, v - 5 * s], [u + 5, v + 5 * s]], COLORS[5], { strokeWidth: 2.5 });
      }
      const own = ["faint", "waits for a copy of its own", { fillOpacity: 0.45 }];
      canvas.height(canvas.key(foot + 28, [[COLORS[1], "sends"], ["faint", "waits for another device"], own]));
      const [before, after] = [turn(slow - 1), turn(slow + 1)];
      const many = lost.length === 1 ? "1 piece was" : `${lost.length} pieces were`;
      const first = lost.map((cross) => `the first on device ${cross.device} at tick ${cross.tick}`)[0];
      const late = ticks > 1 ? `device ${slow} takes ${ticks} ticks for a copy inside it` : "all devices alike";
      return (
        `${free ? "Two buffers and free" : "Two buffers"}, ${late}: all is done at tick ${end}. ` +
        `Device ${before} ${waited(events, before)}; device ${after} ${waited(events, after)}. ` +
        (lost.length
          ? `${many} overwritten too soon (crosses), ${first}; wrong in the end: ${wrong.join(", ")}.`
          : `No piece was overwritten too soon${free ? "" : " in this timing"}, and all end right.`)
      );
    },
  });
})();
