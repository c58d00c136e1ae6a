// Lesson 12: simulate a pipeline schedule as the lesson does, and draw when each stage works or is idle.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const BEGIN = { GPipe: (s, p, m) => m, "1F1B": (s, p) => p - 1 - s };

  const order = (s, p, m, name) => {
    const begin = Math.min(BEGIN[name](s, p, m), m);
    const jobs = [];
    for (let i = 0; i < begin; i++) jobs.push(["F", i]);
    for (let i = 0; i < m; i++) {
      if (begin + i < m) jobs.push(["F", begin + i]);
      jobs.push(["B", name === "GPipe" ? m - 1 - i : i]);
    }
    return jobs;
  };

  // A job starts when its stage is free and its input has arrived. A forward pass takes one second, a backward pass two.
  const simulate = (p, m, name, send) => {
    const waiting = [...Array(p).keys()].map((s) => order(s, p, m, name));
    const ends = {};
    const free = Array(p).fill(0);
    const done = [];
    for (let left = 2 * p * m; left > 0; ) {
      for (let s = 0; s < p; s++) {
        const [kind, i] = waiting[s][0] ?? [];
        if (!kind) continue;
        const turn = kind === "B" && s === p - 1;
        const need = turn ? ends[`F${i},${s}`] : kind === "F" ? (s ? ends[`F${i},${s - 1}`] : -send) : ends[`B${i},${s + 1}`];
        if (need === undefined) continue;
        const start = Math.max(free[s], need + (turn ? 0 : send));
        const length = kind === "F" ? 1 : 2;
        free[s] = ends[`${kind}${i},${s}`] = start + length;
        done.push({ s, kind, i, start, length });
        waiting[s].shift();
        left--;
      }
    }
    return { done, end: Math.max(...free) };
  };

  const live = (done, s) => {
    let now = 0;
    let most = 0;
    const jobs = done.filter((job) => job.s === s).sort((a, b) => a.start - b.start);
    for (const { kind } of jobs) most = Math.max(most, (now += kind === "F" ? 1 : -1));
    return most;
  };

  interactiveFigures.define("pipeline_schedule", {
    title: "Try it: other schedules, stages and microbatches",
    controls: () => ({
      name: choice("schedule", ["GPipe", "1F1B"]),
      p: range("stages", 2, 8, 4),
      m: range("microbatches", 1, 24, 4),
      send: range("seconds per send", 0, 1, 0, { step: 0.25 }),
    }),
    asks: {
      ticks: ({ name, p, m }) => name === "GPipe" && p === 4 && m === 8,
      of_1f1b: ({ name }) => name === "1F1B" && "partly", // in any case, the end of the schedule reveals it
      live: ({ name, p, m }) => name === "1F1B" && p === 4 && m >= 4 && "partly", // the last column reveals it
    },
    draw({ name, p, m, send }, canvas, _, hidden) {
      const whole = simulate(p, m, name, send);
      const begins = hidden.includes("of_1f1b"); // then draw only the beginning
      const counts = !hidden.length; // the counts of live microbatches
      const { done } = whole;
      // Even the shortest schedule, of a single microbatch, takes a second more.
      const end = begins ? 3 * p - 1 : whole.end;
      const left = 54;
      const right = 40;
      const row = 30;
      const wide = (canvas.width - left - right) / end;
      canvas.height(p * row + 46);
      canvas.text(left - 8, 10, "stage", { textAnchor: "end", fontSize: 12 });
      if (counts) canvas.text(canvas.width, 10, "live", { textAnchor: "end", fontSize: 12 });
      for (let s = 0; s < p; s++) {
        canvas.rect(left, 22 + s * row, canvas.width - left - right, row - 4, "faint");
        canvas.text(left - 8, 22 + (s + 0.43) * row, s, { textAnchor: "end" });
        if (counts) canvas.text(canvas.width, 22 + (s + 0.43) * row, live(done, s), { textAnchor: "end" });
      }
      for (const { s, kind, i, start, ...job } of done) {
        const length = Math.min(job.length, end - start);
        if (length <= 0) continue;
        const fill = kind === "F" ? COLORS[0] : COLORS[1];
        canvas.rect(left + start * wide, 22 + s * row, length * wide - 1, row - 4, fill);
        if (length * wide < 15 || (kind === "F" && wide < 15)) continue;
        const letters = { fontSize: 11, fill: kind === "F" ? "#fff" : "#000" };
        canvas.text(left + (start + length / 2) * wide, 22 + (s + 0.43) * row, i, letters);
      }
      canvas.text(left, p * row + 34, "0", { fontSize: 12 });
      canvas.text(canvas.width - right, p * row + 34, `${end} s`, { fontSize: 12 });
      const colours = "Blue is forward, orange is backward, and grey is idle.";
      const shown = `${name} with ${p} stages and ${m === 1 ? "1 microbatch" : `${m} microbatches`}`;
      if (begins) return `The first ${end} seconds of ${shown}. ${colours}`;
      const most = [...Array(p).keys()].map((s) => live(done, s));
      return (
        `${shown} takes ${end} seconds, ` +
        `and each stage is idle for ${(100 * (1 - (3 * m) / end)).toFixed(1)}% of the time. ` +
        `${counts ? `Most live microbatches, by stage: ${most.join(", ")}. ` : ""}${colours}`
      );
    },
  });
})();
