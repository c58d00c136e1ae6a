// Lesson 05b: compare a matrix product that transfers pieces of b while it multiplies with one that gathers them first.
(() => {
  const { range, choice, steps, COLORS, LETTERS } = interactiveFigures;
  const turn = (n, i) => ((i % n) + n) % n;

  // Return device d's state in a step: the pieces of b that it has, the piece that arrives during the step, and the slices of
  // a that it multiplies now or has multiplied. In the lesson's `rotating`, it holds piece d - step after `step` sends. In
  // `gathered`, the sends are the same, and the device multiplies once it has all the pieces.
  const state = (rotating, n, d, step) => {
    const passed = [...Array(step + 1).keys()].map((i) => turn(n, d - i)); // the last is the newest
    const arrives = step < n - 1 ? turn(n, d - step - 1) : null;
    if (rotating) return { there: [passed[step]], arrives, now: [passed[step]], before: passed.slice(0, step) };
    return { there: passed, arrives, now: step === n - 1 ? passed : [], before: [] };
  };

  const says = (rotating, n, step) => {
    const { there, arrives, now } = state(rotating, n, 0, step); // of device 0
    const comes = arrives === null ? "no more pieces arrive" : `piece ${arrives} arrives`;
    const meanwhile = arrives === null ? "and" : "while";
    if (rotating) {
      return (
        `Rotating, step ${step} of ${n - 1}: device 0 multiplies slice ${now[0]} of its rows with piece ${there[0]}, ` +
        `${meanwhile} ${comes}. Its result contains ${step + 1} of ${n} products. Besides its own piece, it needs memory for ` +
        `2 pieces; gathering needs memory for ${n}.`
      );
    }
    return (
      `Gathering around the ring, step ${step} of ${n - 1}: device 0 has ${there.length} of ${n} pieces, and ` +
      `${comes}. ${now.length ? "Now it multiplies" : "It doesn't multiply yet"}. Besides its own piece, it needs memory for ` +
      `${n} pieces; rotating needs memory for 2.`
    );
  };

  interactiveFigures.define("overlapped_ring_matmul", {
    title: "Try it: multiply while the pieces are sent",
    controls: () => ({
      program: choice("program", ["rotating", "gathered"]),
      n: range("devices", 2, 8, 8),
      step: steps("step", ({ n }) => n - 1, 3),
    }),
    draw({ program, n, step }, canvas) {
      const rotating = program === "rotating";
      const narrow = canvas.width < 480;
      const [left, top, row] = [narrow ? 18 : 60, 44, 30];
      const [out, gap] = narrow ? [34, 18] : [64, 48]; // the gap leaves space for the operator between two matrices
      // Leave space for n pieces of b, because gathering needs it. Rotating spreads its two pieces over this space.
      const size = Math.floor(Math.min(64, 272 / n, (canvas.width - left - out - 2 * gap - 4) / (2 * n)));
      const [wide, high] = [Math.min(34, size - (narrow ? 2 : 4)), row - 4];
      const b = left + n * size + gap;
      const result = b + n * size + gap;
      const all = [...Array(n).keys()].map((i) => b + i * size);
      const places = rotating ? [b, b + (n - 1) * size * (n > 4 ? 0.5 : 1)] : all;
      const middle = (d) => top + (d + 0.5) * row;
      const box = (x, d) => [x + (size - wide) / 2, middle(d) - high / 2, wide, high];
      const empty = (x, d) => canvas.rect(...box(x, d), "ground", { stroke: "faint" });
      const frame = (x, d, more) => canvas.rect(...box(x, d), "none", { stroke: "ink", ...more });
      const piece = (x, d, number, pale) => {
        canvas.rect(...box(x, d), "ground");
        canvas.rect(...box(x, d), COLORS[number], pale ? { fillOpacity: 0.35 } : {});
        const fill = pale ? "ink" : LETTERS[number];
        canvas.text(x + size / 2, middle(d) + 1, number, { fontSize: narrow ? 12 : 13, fill });
      };
      const head = (x, y, words) => canvas.text(x, y, words, { fontSize: 12 });
      head(left + (n * size) / 2, 9, narrow ? "rows of a" : "its slices of the rows of a");
      head((places[0] + places.at(-1) + size) / 2, 9, narrow ? "pieces of b" : "the pieces of b in its memory");
      head(result + out / 2, 9, narrow ? "result" : "its result");
      if (!narrow) canvas.text(left - 8, 30, "device", { fontSize: 12, textAnchor: "end" });
      for (let j = 0; j < n; j++) head(left + (j + 0.5) * size, 30, j);
      if (rotating) ["now", "next"].forEach((word, i) => head(places[i] + size / 2, 30, word));
      else places.forEach((x, j) => head(x + size / 2, 30, j));
      head(result + out / 2, 30, `of ${n}`);

      for (let d = 0; d < n; d++) {
        const { there, arrives, now, before } = state(rotating, n, d, step);
        canvas.text(left - 8, middle(d) + 1, d, { textAnchor: "end" });
        canvas.text(b - gap / 2, middle(d), "@", { fontSize: 12 });
        canvas.text(result - gap / 2, middle(d), "=", { fontSize: 12 });
        for (let j = 0; j < n; j++) {
          const x = left + j * size;
          if (!now.includes(j) && !before.includes(j)) empty(x, d);
          else piece(x, d, j, before.includes(j));
          if (now.includes(j)) frame(x, d, { strokeWidth: 2 });
        }
        const known = (j) => (there.includes(j) || j === arrives ? j : null);
        const held = rotating ? [there[0], arrives] : places.map((_, j) => known(j));
        for (const [i, x] of places.entries()) {
          if (held[i] === null) empty(x, d);
          else piece(x, d, held[i], held[i] === arrives);
          if (held[i] !== null && held[i] === arrives) frame(x, d, { strokeDasharray: "3 2" });
        }
        if (rotating && arrives !== null) {
          // Draw the send to the right neighbour, which is the next device, or device 0 for the last one.
          const [from, to] = [places[0] + (size + wide) / 2 + 3, places[1] + (size - wide) / 2 - 3];
          const half = (from + to) / 2;
          if (d < n - 1) canvas.arrow([from, middle(d)], [to, middle(d + 1)]);
          else canvas.line([[from, middle(d)], [half, middle(d) + row / 2 - 2]]);
          if (d === 0) canvas.arrow([half, middle(0) - row / 2 + 2], [to, middle(0)]);
        }
        const done = now.length + before.length;
        const bar = [result, middle(d) - high / 2];
        canvas.rect(...bar, out, high, "ground", { stroke: "faint" });
        canvas.rect(...bar, (out * done) / n, high, COLORS[7], { fillOpacity: 0.45 });
        canvas.text(result + out / 2, middle(d) + 1, done);
      }
      canvas.height(top + n * row + 6);
      return says(rotating, n, step);
    },
  });
})();
