// Lesson 16: show which process holds which of x's sixteen elements, and in which processes np.asarray(x) works.
(() => {
  const { range, choice, COLORS, LETTERS } = interactiveFigures;

  const MESHES = ["data 8 x model 1", "data 2 x model 4", "model 4 x data 2", "data 4 x model 2", "model 2 x data 4"];

  // Return the range of elements on the device at a position in the mesh. A tuple's first name makes the largest pieces.
  const held = (axes, spec, place) => {
    const inner = axes[1].size;
    const at = { [axes[0].name]: Math.floor(place / inner), [axes[1].name]: place % inner };
    const size = Object.fromEntries(axes.map((axis) => [axis.name, axis.size]));
    let [start, length] = [0, 16];
    for (const name of spec.match(/data|model/g) ?? []) {
      length /= size[name];
      start += at[name] * length;
    }
    return [start, start + length];
  };

  interactiveFigures.define("process_shards", {
    title: "Try it: which shards each process stores",
    controls: () => ({
      count: choice("processes", ["1", "2", "4", "8"], "2"),
      mesh: choice("mesh", MESHES),
      spec: choice("spec", ["P('data')", "P('model')", "P(('data', 'model'))", "P()"]),
      seen: range("seen from process", 0, ({ count }) => count - 1, 1),
    }),
    draw({ count, mesh, spec, seen }, canvas) {
      const axes = mesh.split(" x ").map((words) => ({ name: words.split(" ")[0], size: Number(words.split(" ")[1]) }));
      const each = 8 / count;
      const shards = [...Array(8).keys()].map((place) => held(axes, spec, place));
      const here = shards.slice(seen * each, (seen + 1) * each);
      const reached = [...Array(16).keys()].filter((i) => here.some(([start, stop]) => start <= i && i < stop));

      // Draw a row for each device, grouped by process. The elements that the device holds are filled.
      const narrow = canvas.width < 480;
      const left = narrow ? 84 : 116;
      const wide = (canvas.width - left - 2) / 16;
      const [row, gap, top] = [23, 7, 24];
      const small = { fontSize: narrow ? 11 : 12 };
      const y = (place) => top + place * row + Math.floor(place / each) * gap;
      const below = y(7) + row + 20;
      canvas.height(below + row + 24);
      canvas.text(narrow ? 21 : 28, 11, "process", small);
      canvas.text(left - 20, 11, "place", small);
      const pale = { ...small, opacity: 0.75 };
      for (let i = 0; i < 16; i += narrow ? 4 : 1) canvas.text(left + (i + 0.5) * wide, 11, i, pale);
      for (let p = 0; p < count; p++) {
        const [from, to] = [y(p * each), y((p + 1) * each - 1) + row];
        const mine = p === seen;
        canvas.rect(1, from - 1, canvas.width - 2, to - from, mine ? "ground" : "none", {
          stroke: mine ? "ink" : "faint",
          strokeWidth: mine ? 1.5 : 1,
          rx: 4,
        });
        canvas.text(narrow ? 21 : 28, (from + to) / 2 - 1, p, { fontWeight: mine ? 700 : 400 });
      }
      const strip = ([start, stop], at, p, strong) => {
        const look = { fillOpacity: strong ? 1 : 0.3, rx: 2 };
        canvas.rect(left + start * wide + 1, at, (stop - start) * wide - 2, row - 4, COLORS[p], look);
        if (narrow) return;
        const letters = { fontSize: 11, fill: strong ? LETTERS[p] : "ink" };
        for (let i = start; i < stop; i++) canvas.text(left + (i + 0.5) * wide, at + (row - 4) / 2, i, letters);
      };
      shards.forEach((shard, place) => {
        const p = Math.floor(place / each);
        canvas.text(left - 20, y(place) + row / 2 - 2, place, small);
        strip(shard, y(place) + 1, p, p === seen);
      });

      // Draw all elements that the chosen process holds.
      canvas.text(left - 8, below + row / 2 - 2, `process ${seen}`, { ...small, textAnchor: "end", fontWeight: 600 });
      canvas.rect(left, below, 16 * wide, row - 4, "none", { stroke: "ink", strokeDasharray: "3 3", strokeWidth: 1 });
      reached.forEach((i) => strip([i, i + 1], below, seen, true));
      const works = reached.length === 16;
      const bold = { ...small, textAnchor: "start", fontWeight: 600 };
      canvas.text(left, below + row + 12, `np.asarray(x): ${works ? "works" : "raises an error"}`, bold);
      const which = [...new Set(here.map(([start, stop]) => `[${start}:${stop}]`))];
      const list = which.length === 1 && each > 1 ? `each ${which[0]}` : here.map(([a, b]) => `[${a}:${b}]`).join(", ");
      // np.asarray raises unless the process's own devices hold all of x. Tested with 1, 2, 4 and 8 processes, also on 0.7.2.
      const whole = here.every(([start, stop]) => stop - start === 16);
      const why = whole
        ? "x is replicated on every device, so np.asarray(x) works in every process."
        : works
          ? `x is sharded, but all 16 numbers are in this process, so np.asarray(x) works in process ${seen}.`
          : `These are only ${reached.length} of the 16 numbers, so np.asarray(x) raises an error in process ${seen}.`;
      const plural = each > 1 ? "s" : "";
      return `Process ${seen} of ${count} has ${each} addressable shard${plural} of x: ${list}. ${why}`;
    },
  });
})();
