// Lesson 11: show one layer's forward and backward pass in each of the lesson's programs: the positions of the collectives,
// the units that they send (all-reduce 2, all-gather 1, reduce-scatter 1), and the activations that the layer keeps for the
// backward pass. Positions and activations follow JAX's traces, and the measured numbers come from the lesson.
(() => {
  const { choice, steps, COLORS, LETTERS } = interactiveFigures;
  const [GATHER, SCATTER, HELD] = [2, 3, 4]; // indices of colours; an all-reduce has both colours, as a reduce-scatter and an all-gather
  const PARTS = { "all-reduce": [SCATTER, GATHER], "all-gather": [GATHER], "reduce-scatter": [SCATTER] };

  // A layer's six positions, from top to bottom: before, in and after attention, and before, in and after the MLP. The columns
  // list the operations there in the forward pass, the recomputation and the backward pass (which runs from bottom to top).
  const SUMS = [null, "attention", "all-reduce", null, "MLP", "all-reduce"];
  const SUMS_BACK = ["all-reduce", "attention", null, "all-reduce", "MLP", null];
  const PIECES = ["all-gather", "attention", "reduce-scatter", "all-gather", "MLP", "reduce-scatter"];
  const PIECES_BACK = ["reduce-scatter", "attention", "all-gather", "reduce-scatter", "MLP", "all-gather"];
  const anew = (forward) => [...forward.slice(0, 4), "MLP: up"]; // without the MLP's second product and the final sum
  const FORMS = {
    tensor: { keeps: "all", columns: [SUMS, [], SUMS_BACK] },
    sequence: { keeps: "all", columns: [PIECES, [], PIECES_BACK] },
    "tensor, again": { keeps: "input", columns: [SUMS, anew(SUMS), SUMS_BACK] },
    "sequence, again": { keeps: "input", columns: [PIECES, anew(PIECES), PIECES_BACK] },
    "sequence, gather again": {
      keeps: "not gathered",
      columns: [PIECES, ["all-gather", null, null, "all-gather"], PIECES_BACK],
    },
  };
  const isWhole = ({ columns }) => columns[0] === SUMS; // whether x is replicated between the halves
  const units = (place) => PARTS[place]?.length ?? 0;
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  // Return all operations in the order of execution, as { c, row, place }.
  const order = ({ columns }) =>
    columns.flatMap((column, c) => {
      const found = column.map((place, row) => ({ c, row, place })).filter(({ place }) => place);
      return c === 2 ? found.reverse() : found;
    });

  // Return the arrays that one layer keeps once the forward pass has reached this row, with their sizes in units of A, which is
  // 2 · 64 · 128 numbers of 8 bytes. For its own head, a device keeps q, k, v and their result (an eighth each) and
  // twice 2 · 64² scores. For its hidden features, it keeps 2 · 64 · 64 numbers, and as many bytes for relu's mask. Arrays
  // with one number per token are omitted.
  const kept = (form, row) => {
    const x = isWhole(form) ? 1 : 1 / 8;
    if (form.keeps === "input") return row < 0 ? [] : [["x", x]];
    const half = (own, size) => [["x", x], ["norm(x)", form.keeps === "all" ? 1 : 1 / 8], [own, size]];
    return [...(row < 0 ? [] : half("head", 4 / 8 + 2 / 2)), ...(row < 3 ? [] : half("hidden", 1 / 2 + 1 / 16))];
  };

  interactiveFigures.define("tensor_parallel_layer", {
    title: "Try it: what one layer sends and keeps, forward and backward",
    controls: () => ({
      name: choice("program", Object.keys(FORMS), "sequence, again"),
      step: steps("step", ({ name }) => order(FORMS[name]).length, 99),
    }),
    asks: {
      sums_a_layer: ({ name }) => isWhole(FORMS[name]),
      in_pieces: ({ name }) => name === "sequence",
      gather_again: ({ name }) => name === "sequence, gather again",
    },
    // The lesson's numbers: {sent: {program: units}, held: {program: A per layer}, flops: {program: relative to tensor's}}
    draw({ name, step }, canvas, { sent, held, flops }) {
      const form = FORMS[name];
      const all = order(form);
      const gap = canvas.width < 300 ? 3 : 8;
      const wide = (canvas.width - 2 * gap) / 3;
      const [high, band] = [32, 10];
      const y = (row) => 40 + row * (high + band);
      const foot = y(6) + 40;
      canvas.height(foot + 110);
      const small = (x, y, words, more = {}) => canvas.text(x, y, words, { fontSize: 11, ...more });
      const line = (y, words) => canvas.text(0, y, words, { fontSize: 12, textAnchor: "start" });

      ["forward ↓", "again ↓", "backward ↑"].forEach((head, c) => {
        const x = c * (wide + gap);
        const middle = x + wide / 2;
        const column = form.columns[c];
        const isThere = (row) => c !== 1 || column[row] || (form.keeps === "input" && row >= 0 && row < 4);
        canvas.text(middle, 9, head);
        if (!column.length) return small(middle, y(0) + high / 2, "nothing", { opacity: 0.7 });
        // between the operations, draw an array of x's shape: replicated or, outside the halves, an eighth of it
        for (let row = 0; row < (c === 1 ? 5 : 7); row++) {
          const size = isWhole(form) || row % 3 ? wide : wide / 8;
          if (!isThere(row) && !isThere(row - 1)) continue;
          canvas.rect(middle - size / 2, y(row) - band + 2, size, band - 4, COLORS[HELD]);
        }
        column.forEach((place, row) => {
          if (!place && isThere(row)) small(middle, y(row) + high / 2, "nothing sent", { opacity: 0.7 });
          if (!place) return;
          const number = all.findIndex((one) => one.c === c && one.row === row);
          const parts = PARTS[place] ?? [];
          const done = number < step;
          if (done && !parts.length) canvas.rect(x, y(row), wide, high, "faint");
          const share = wide / parts.length;
          parts.forEach((color, i) => canvas.rect(x + i * share, y(row), share, high, done ? COLORS[color] : "none"));
          const frame = { stroke: done ? "ink" : "faint", strokeWidth: number === step - 1 ? 3 : 1 };
          canvas.rect(x, y(row), wide, high, "none", frame);
          const words = parts.length ? [place, `${parts.length} unit${parts.length > 1 ? "s" : ""}`] : [place];
          words.forEach((word, i) => {
            const fill = done && parts.length ? LETTERS[parts[0]] : "ink";
            const said = small(middle, y(row) + (parts.length ? 9 + 14 * i : high / 2), word, { fill });
            if (said.getComputedTextLength() > wide - 4) said.setAttribute("textLength", wide - 4);
          });
        });
      });
      canvas.rect(1, y(6) + 6, 16, 6, COLORS[HELD]);
      const where = canvas.width > 420 ? "what a device stores there of an array of x's shape" : "an array of x's shape";
      small(23, y(6) + 9, `${where}: all, or an eighth`, { textAnchor: "start" });

      const total = sum(all.map(({ place }) => units(place)));
      const now = sum(all.slice(0, step).map(({ place }) => units(place)));
      line(foot, `sent: ${now} of ${total} units`);
      const cell = Math.min(26, (canvas.width - 2) / Math.max(...Object.values(sent)));
      const parts = all.flatMap(({ place }) => PARTS[place] ?? []);
      const box = { stroke: "ink", strokeWidth: 1 };
      const fill = (color, i) => (i < now ? COLORS[color] : "none");
      parts.forEach((color, i) => canvas.rect(1 + i * cell, foot + 10, cell - 3, 18, fill(color, i), box));

      const row = Math.max(-1, ...all.slice(0, step).map((one) => (one.c ? 5 : one.row)));
      const keeps = kept(form, row);
      const keep = sum(keeps.map(([, size]) => size));
      const shown = keep < 1 ? String(keep) : keep.toFixed(1);
      const scale = (canvas.width - 2) / 9; // pixels per A
      line(foot + 54, `kept by a layer for its backward pass: ${shown} A`);
      let x = 1;
      for (const [what, size] of keeps) {
        canvas.rect(x, foot + 64, size * scale, 20, COLORS[HELD], box);
        if (size * scale > 7 * what.length) small(x + (size * scale) / 2, foot + 74, what, { fill: "#000" });
        x += size * scale;
      }
      const mark = 1 + held[name] * scale;
      canvas.line([[mark, foot + 63], [mark, foot + 91]], "ink", { strokeWidth: 2, strokeDasharray: "4 3" });
      const said = line(foot + 100, `temporaries, measured: ${held[name]} A`);
      said.setAttribute("x", Math.max(0, Math.min(mark - 1, canvas.width - 1 - said.getComputedTextLength())));

      const { c, place } = all[step - 1] ?? {};
      const price = units(place) ? `sends ${units(place)} unit${units(place) > 1 ? "s" : ""}` : "sends nothing";
      const latest = step ? `${["forward", "again", "backward"][c]}, ${place} ${price}` : "before the layer";
      return (
        `${name}: ${latest}; ${now} of ${total} units so far. Each layer keeps about ${shown} A for the backward pass. ` +
        `Its temporaries, including working memory, take up ${held[name]} A. ` +
        `It computes ${flops[name].toFixed(2)} times the FLOPs of the program tensor.`
      );
    },
  });
})();
