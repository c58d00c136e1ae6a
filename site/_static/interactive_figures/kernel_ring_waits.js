// Lesson 18: simulate the ring product with two buffers and one slow device. Show which device waits for which, and which
// pieces are overwritten too soon.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const N = 8;
  const COPY = (1e6 * 2 * 512 * 4096) / 50e9; // µs, as in the lesson
  const PRODUCT = (1e6 * 2 * 4096 * 512 * 4096) / 197e12;
  const [HOPEFUL, ASKS] = ["hopeful", "ring_product, which asks first"];
  const turn = (i) => ((i % N) + N) % N;

  // Yield the operations of the lesson's kernel `ring_product`, line by line. Buffers are given by index. `reads` and `writes`
  // are the numbers of pieces: 0 is the device's own, and k + 1 is the one that arrives in iteration k.
  function* ring(me, free) {
    yield { is: "signal", of: "barrier", to: turn(me - 1) };
    yield { is: "wait", of: "barrier" };
    for (let k = 0; k < N; k++) {
      const [here, there] = [k % 2, (k + 1) % 2];
      if (free && 0 < k && k < N - 1) yield { is: "wait", of: "free" };
      if (k < N - 1) yield { is: "copy", from: here, into: there, to: turn(me + 1), reads: k, writes: k + 1 };
      yield { is: "product", from: here, place: turn(me - k), reads: k };
      if (k < N - 1) {
        yield { is: "wait", of: "sent" };
        yield { is: "wait", of: "arrived" };
      }
      if (free && k < N - 2) yield { is: "signal", of: "free", to: turn(me - 1) };
    }
  }

  // Simulate the kernel as lesson_helpers/kernels/simulator.py does. A signal takes no time. A product takes PRODUCT or, on the
  // slow device, `slowly`. It reads its buffer at its start. A copy reads its source and writes its target at its end.
  const simulate = (slow, slowly, free) => {
    const runs = [...Array(N).keys()].map((me) => ring(me, free));
    const memory = runs.map((_, me) => ({ result: Array(N).fill(null), buffers: [me, null] }));
    const counts = {};
    const waiting = {};
    const [events, lost] = [[], []]; // lost: pieces overwritten before they were multiplied and sent
    const read = runs.map(() => Array(N).fill(0));
    const queue = []; // [time, action], sorted by time and then by insertion
    let now = 0;
    const at = (time, act) => {
      const later = queue.findIndex(([other]) => other > time);
      queue.splice(later < 0 ? queue.length : later, 0, [time, act]);
    };
    const increment = (device, of, source) => {
      const key = `${device} ${of}`;
      counts[key] = (counts[key] ?? 0) + 1;
      if (waiting[device]?.key !== key) return;
      const { since } = waiting[device];
      delete waiting[device];
      counts[key]--;
      if (now > since) events.push({ is: "wait", device, start: since, end: now, other: source });
      goOn(device);
    };
    const finish = (device, { from, into, to, reads, writes }) => {
      read[device][reads]++;
      if (writes > 1 && read[to][writes - 2] < 2) lost.push({ device: to, time: now });
      memory[to].buffers[into] = memory[device].buffers[from];
      increment(to, "arrived", device);
      increment(device, "sent", device);
    };
    const goOn = (device) => {
      for (let step = runs[device].next(); !step.done; step = runs[device].next()) {
        const asked = step.value;
        if (asked.is === "copy") {
          events.push({ is: "send", device, start: now, end: now + COPY, other: asked.to });
          at(now + COPY, () => finish(device, asked));
        } else if (asked.is === "product") {
          memory[device].result[asked.place] = memory[device].buffers[asked.from];
          read[device][asked.reads]++;
          const end = now + (device === slow ? slowly : PRODUCT);
          events.push({ is: "product", device, start: now, end });
          return void at(end, () => goOn(device));
        } else if (asked.is === "signal") at(now, () => increment(asked.to, asked.of, device));
        else {
          const key = `${device} ${asked.of}`;
          if (!counts[key]) return void (waiting[device] = { key, since: now });
          counts[key]--;
        }
      }
    };
    for (let device = 0; device < N; device++) at(0, () => goOn(device));
    while (queue.length) {
      const [time, act] = queue.shift();
      now = time;
      act();
    }
    events.sort((a, b) => a.start - b.start || a.device - b.device || a.end - b.end);
    const wrong = memory.flatMap(({ result }, device) => (result.every((one, place) => one === place) ? [] : [device]));
    return { events, lost, wrong, end: Math.max(...events.map((event) => event.end)) };
  };
  const four = (number) => Number(number.toPrecision(4));
  const waited = (events, device) => {
    const waits = events.filter((event) => event.is === "wait" && event.device === device);
    if (!waits.length) return "never waits";
    const total = waits.reduce((sum, { start, end }) => sum + end - start, 0);
    const longer = (most, event) => (event.end - event.start > most.end - most.start ? event : most);
    const { other, start, end } = waits.reduce(longer);
    const whom = other === device ? "its own copy" : `device ${other}`;
    return `waits ${four(total)} µs, longest for ${whom}, from ${four(start)} to ${four(end)}`;
  };

  const LOOKS = { send: [14, COLORS[1], 18], product: [17, COLORS[0], 0], wait: [17, "faint", 0] }; // height, colour, offset from the row's top

  interactiveFigures.define("kernel_ring_waits", {
    title: "Try it: slow down a device",
    controls: () => ({
      kernel: choice("kernel", [HOPEFUL, ASKS]),
      slow: range("slow device", 0, N - 1, 3),
      slowly: range("µs of its product", 88, 320, 160),
    }),
    asks: { slow_end: ({ slowly }) => slowly === 240 },
    draw({ kernel, slow, slowly }, canvas) {
      const free = kernel === ASKS;
      const { events, lost, wrong, end } = simulate(slow, slowly, free);
      const [left, right, top, row] = [54, 44, 24, 36];
      const tick = (canvas.width - left - right) / simulate(slow, 320, true).end; // one scale for all settings
      const x = (when) => left + when * tick;
      const small = { fontSize: 12 };
      canvas.text(left - 8, 10, "device", { textAnchor: "end", ...small });
      canvas.text(canvas.width, 10, "ends", { textAnchor: "end", ...small });
      const foot = top + N * row;
      for (let when = 0; x(when) < canvas.width - right; when += 400) {
        canvas.line([[x(when), top - 2], [x(when), foot + 4]], "faint", { strokeWidth: 1 });
        canvas.text(x(when), foot + 14, when, small);
      }
      canvas.text(canvas.width, foot + 14, "µs", { textAnchor: "end", ...small });
      for (let device = 0; device < N; device++) {
        const y = top + device * row;
        const late = device === slow && slowly > 88;
        canvas.text(left - 8, y + 9, device, { textAnchor: "end", fontWeight: late ? 700 : 400 });
        if (late) canvas.text(left - 8, y + 24, "slow", { textAnchor: "end", ...small });
        const held = wrong.includes(device) ? ["wrong", 700] : ["right", 400];
        canvas.text(canvas.width, y + 9, held[0], { textAnchor: "end", fontSize: 12, fontWeight: held[1] });
      }
      for (const { is, device, start, end, other } of events) {
        const y = top + device * row;
        const long = (end - start) * tick;
        const [high, fill, down] = LOOKS[is];
        const own = is === "wait" && other === device; // drawn paler, because no other device causes it
        canvas.rect(x(start), y + down, long - 0.8, high, fill, own ? { fillOpacity: 0.45 } : {});
        if (is === "product") continue;
        const [words, room] = is === "send" ? [`→ ${other}`, 22] : own ? ["own", 26] : [`for ${other}`, 34];
        const ink = is === "send" ? "#000" : "ink";
        const said = long > room ? words : is === "wait" && !own && long > 11 ? other : "";
        const middle = x(start) + long / 2;
        const crossed = own && lost.some((cross) => cross.device === device && Math.abs(x(cross.time) - middle) < 20);
        if (said !== "" && !crossed) canvas.text(middle, y + down + high / 2 + 0.5, said, { fontSize: 11, fill: ink });
      }
      for (const { device, time: when } of lost) {
        const [u, v] = [x(when), top + device * row + 9];
        for (const s of [1, -1]) canvas.line([[u - 5, v - 5 * s], [u + 5, v + 5 * s]], COLORS[5], { strokeWidth: 2.5 });
      }
      const own = ["faint", "waits for its own copy", { fillOpacity: 0.45 }];
      canvas.height(canvas.legend(foot + 28, [[COLORS[0], "multiplies"], [COLORS[1], "sends"], ["faint", "waits for another device"], own]));
      const [before, after] = [turn(slow - 1), turn(slow + 1)];
      const many = lost.length === 1 ? "1 piece was" : `${lost.length} pieces were`;
      const first = lost.map((cross) => `the first on device ${cross.device} after ${four(cross.time)} µs`)[0];
      const late = `device ${slow} takes ${slowly} µs for a product`;
      return (
        `${kernel}; ${late}: all devices finish within ${four(end)} µs. ` +
        `Device ${before} ${waited(events, before)}; device ${after} ${waited(events, after)}. ` +
        (lost.length
          ? `${many} overwritten too soon (crosses), ${first}. Devices with a wrong result: ${wrong.join(", ")}.`
          : `No piece was overwritten too soon${free ? "" : " with these timings"}, and all results are right.`)
      );
    },
  });
})();
