// Lesson 01: draw a loop of six loads on the host and six steps on the device, in which the host waits in every step, in
// some steps or only at the end. As in the lesson's `timeline`, enqueueing a step takes no time.
(() => {
  const { range, choice, COLORS, LETTERS } = interactiveFigures;
  const COUNT = 6;
  const EVERY = { "at the end": COUNT, "in every third step": 3, "in every second step": 2 };
  const ticks = (n) => `${n} ${n === 1 ? "tick" : "ticks"}`;

  // For each step, return the start and end of its load, its start and end on the device, and the end of the host's wait.
  const run = (load, step, every) => {
    const jobs = [];
    let now = 0;
    for (let i = 0; i < COUNT; i++) {
      const given = now + load;
      const start = Math.max(given, jobs[i - 1]?.end ?? 0); // a step needs the previous step's result
      const end = start + step;
      jobs.push({ load: now, given, start, end, on: (now = (i + 1) % every ? given : Math.max(given, end)) });
    }
    return jobs;
  };

  const beside = (a, b) => Math.max(0, Math.min(a.given, b.end) - Math.max(a.load, b.start));
  const busy = (jobs) => jobs.flatMap((a) => jobs.map((b) => beside(a, b))).reduce((x, y) => x + y); // during loads
  const open = (jobs, i) => jobs.slice(0, i + 1).filter(({ end }) => end > jobs[i].given).length;
  const unfinished = (jobs) => Math.max(...jobs.map((_, i) => open(jobs, i)));
  const took = (jobs) => jobs[COUNT - 1].end;

  interactiveFigures.define("async_dispatch", {
    title: "Try it: where the loop waits",
    asks: { overlap: ({ where }) => where === "at the end" },
    controls: () => ({
      load: range("a load takes", 0.5, 3, 1, { step: 0.5, shown: ticks }),
      step: range("a step takes", 0.5, 3, 1, { step: 0.5, shown: ticks }),
      where: choice("second loop waits", Object.keys(EVERY), "in every second step"),
    }),
    draw({ load, step, where }, canvas) {
      const loops = { "in every step": run(load, step, 1), [where]: run(load, step, EVERY[where]) };
      const longest = Math.max(...Object.values(loops).map(took));
      const left = 50;
      const wide = (canvas.width - left - 1) / longest;
      const [row, gap, panel] = [26, 12, 104];
      const at = (time) => left + time * wide;
      canvas.height(2 * panel + 18);
      Object.entries(loops).forEach(([name, jobs], k) => {
        const [host, device] = [k * panel + 22, k * panel + 22 + row + gap];
        canvas.text(left, k * panel + 10, `waits ${name}: ${ticks(took(jobs))}`, { textAnchor: "start", fontSize: 12 });
        for (const [y, words] of [[host, "host"], [device, "device"]]) {
          canvas.text(left - 8, y + row / 2, words, { textAnchor: "end", fontSize: 12 });
          canvas.rect(left, y, took(jobs) * wide, row, "faint");
        }
        jobs.forEach((job, i) => {
          for (const [y, from, length] of [[host, job.load, load], [device, job.start, step]]) {
            canvas.rect(at(from) + 0.5, y, length * wide - 1, row, COLORS[i]);
            if (length * wide < 9) continue;
            canvas.text(at(from + length / 2), y + row / 2, i, { fill: LETTERS[i], fontSize: 12 });
          }
          canvas.line([[at(job.given), host + row], [at(job.start), device]], "ink", { strokeWidth: 1 }); // queued
          if (job.on === job.given) return;
          const length = (job.on - job.given) * wide;
          const dashed = { stroke: "ink", strokeDasharray: "3 3" };
          canvas.rect(at(job.given) + 1.5, host + 1, length - 3, row - 2, "none", dashed);
          if (length > 40) canvas.text(at(job.given) + length / 2, host + row / 2, "waits", { fontSize: 12 });
        });
      });
      const base = 2 * panel - 6;
      for (let t = 0; t <= longest; t++) canvas.line([[at(t), base], [at(t), base + 5]], "ink", { strokeWidth: 1 });
      canvas.text(at(0), base + 14, "0", { fontSize: 12 });
      canvas.text(at(longest), base + 14, ticks(longest), { textAnchor: "end", fontSize: 12 });

      const [each, other] = Object.values(loops);
      const works = (jobs) => `works for ${ticks(busy(jobs))} and waits for ${COUNT * load - busy(jobs)}`;
      const most = unfinished(other);
      return (
        `A loop that waits in every step takes ${ticks(took(each))}. ` +
        `During ${ticks(COUNT * load)} of loading, the device ${works(each)}. ` +
        `A loop that waits ${where} takes ${ticks(took(other))}: the device ${works(other)}, ` +
        `and at most ${most} ${most === 1 ? "step is" : "steps are"} unfinished at a time. ` +
        `The first loop takes ${(took(each) / took(other)).toFixed(1)} times as long.`
      );
    },
  });
})();
