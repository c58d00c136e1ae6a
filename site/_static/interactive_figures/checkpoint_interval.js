// Lesson 17: draw the time lost to saves and to failures for any interval T between saves, by the lesson's formula
// C / T + T / 2M. The sliders multiply the lesson's numbers (Llama 3, and storage that writes 2e10 bytes per second).
(() => {
  const { range, COLORS } = interactiveFigures;
  const SAVE = (405e9 * 12) / 2e10; // seconds
  const FAIL = (54 * 24 * 3600) / 419;
  const young = (C, M) => Math.sqrt(2 * C * M);
  const BEST = young(SAVE, FAIL);
  const [FIRST, LAST] = [60, 36000]; // seconds between saves at the left and right edges
  const TOPS = [0.02, 0.04, 0.08, 0.2, 0.4, 0.8]; // possible upper ends of the axis of lost time
  const three = (x) => (x >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(3))));
  const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
  const minutes = (seconds) => three(seconds / 60);

  const save = (k) => SAVE * 10 ** (k / 4);
  const fail = (k) => FAIL * 2 ** (k / 2);
  const between = (k) => BEST * 2 ** (k / 4);

  interactiveFigures.define("checkpoint_interval", {
    title: "Try it: save more or less often",
    controls: () => ({
      t: range("a save after", -18, 14, -8, { shown: (k) => `${minutes(between(k))} min` }),
      c: range("a save takes", -8, 0, -8, { shown: (k) => `${three(save(k))} s` }),
      m: range("a failure every", -3, 6, 0, { shown: (k) => `${three(fail(k) / 3600)} h` }),
    }),
    asks: { slower: ({ c }) => c === 0 },
    draw({ t, c, m }, canvas) {
      const [T, C, M] = [between(t), save(c), fail(m)];
      const lost = (at) => C / at + at / (2 * M);
      const best = young(C, M);
      const most = TOPS.find((end) => end >= 2.2 * lost(best)) || TOPS[TOPS.length - 1]; // keeps the minimum visible
      const [left, right, high] = [42, 10, 210];
      const [saves, failures] = [C / T, T / (2 * M)];
      const under = canvas.legend(0, [[COLORS[0], "saves, C / T"], [COLORS[1], "failures, T / 2M"]]);
      const sum = `lost: ${percent(saves, 2)} + ${percent(failures, 2)} = ${percent(lost(T))}`;
      canvas.text(0, under + 10, sum, { textAnchor: "start", fontWeight: 600 });
      const top = under + 54;
      const base = top + high;
      canvas.height(base + 42);
      const x = (at) => left + ((canvas.width - left - right) * Math.log(at / FIRST)) / Math.log(LAST / FIRST);
      const y = (share) => base - (high * share) / most;
      const small = { fontSize: 12 };
      for (const tick of [0, 0.25, 0.5, 0.75, 1].map((part) => part * most)) {
        canvas.line([[left, y(tick)], [canvas.width - right, y(tick)]], "faint", { strokeWidth: 1 });
        canvas.text(left - 8, y(tick), `${three(100 * tick)}%`, { ...small, textAnchor: "end" });
      }
      for (const tick of [1, 10, 100]) canvas.text(x(60 * tick), base + 14, tick, small);
      canvas.text((left + canvas.width) / 2, base + 32, "minutes of work between saves", small);

      const at = [...Array(241).keys()].map((k) => FIRST * (LAST / FIRST) ** (k / 240));
      const inside = (f) => at.filter((s) => f(s) <= most).map((s) => [x(s), y(f(s))]);
      const column = Math.min(failures, most);
      const end = Math.min(lost(T), most);
      canvas.rect(x(T) - 9, y(column), 18, base - y(column), COLORS[1]);
      canvas.rect(x(T) - 9, y(end), 18, y(column) - y(end), COLORS[0]);
      canvas.line(inside((s) => C / s), COLORS[0], { strokeDasharray: "6 4" });
      canvas.line(inside((s) => s / (2 * M)), COLORS[1], { strokeDasharray: "2 3" });
      canvas.line(inside(lost), "ink", { strokeWidth: 2.5 });
      canvas.line([[x(best), top - 8], [x(best), base]], "ink", { strokeDasharray: "4 3" });
      canvas.text(x(best), top - 18, `Young: ${minutes(best)} min`, small);
      if (lost(T) <= most) canvas.circle(x(T), y(lost(T)), 5, "ink");
      else canvas.text(x(T), top - 8, "↑", small);

      return (
        `With a save after every ${minutes(T)} minutes of work, ${percent(saves, 2)} of the work is lost to saves ` +
        `and ${percent(failures, 2)} to failures, ${percent(lost(T))} in all. ` +
        `Young's interval, ${minutes(best)} minutes, loses ${percent(lost(best))}. ` +
        "The formula is optimistic: the counted loss is higher."
      );
    },
  });
})();
