// Lesson 09: draw all-gathers on a chip's links beside matrix products on its units, by the lesson's estimate.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const [N, MAX_ROWS] = [2048, 3072]; // the weights have the shape (N, N)
  const EARLY = "beside products";
  const whole = (time) => Math.round(time);

  // For each layer, return the start of its gather and of its product. With `beside`, as in the lesson's plan, the gather of
  // the next weights starts together with a product, and a product starts once its weights are there and the previous
  // product has ended.
  const run = (layers, gather, product, beside) => {
    const jobs = [];
    for (let k = 0; k < layers; k++) {
      const before = jobs[k - 1];
      const sent = !before ? 0 : beside ? before.computed : before.computed + product;
      jobs.push({ sent, computed: Math.max(sent + gather, before ? before.computed + product : 0) });
    }
    return jobs;
  };

  // Draw a bar with crossed lines, which stand for sending in the figure above.
  const crossed = (canvas, x, y, width, height) => {
    canvas.rect(x, y, width, height, COLORS[1]);
    let d = "";
    for (let c = x - height + 4; c < x + width; c += 8) {
      const [from, to] = [Math.max(c, x), Math.min(c + height, x + width)];
      d += `M${from},${y + from - c}L${to},${y + to - c}M${from},${y + height - from + c}L${to},${y + height - to + c}`;
    }
    canvas.add("path", { d, stroke: "#555", strokeWidth: 1, fill: "none" });
  };

  interactiveFigures.define("gather_overlap", {
    title: "Try it: how much of the sending is hidden",
    controls: () => ({
      rows: range("rows of x on a chip", 256, MAX_ROWS, N / 4, { step: 256 }),
      layers: range("layers", 2, 6, 2),
      order: choice("gathers", [EARLY, "one after the other"]),
    }),
    asks: { hidden: ({ rows, layers, order }) => rows === N && layers === 2 && order === EARLY },
    draw({ rows, layers, order }, canvas, { flops, ringRate }) {
      const microseconds = (count) => (1e6 * 2 * count * N * N) / flops; // 2 · rows · N² FLOPs
      const gather = (((1e6 * 7) / 8) * 2 * N * N) / ringRate; // 7/8 of 2 · N² bytes, in both directions around a ring
      const product = microseconds(rows);
      const jobs = run(layers, gather, product, order === EARLY);
      const end = jobs[layers - 1].computed + product;
      const serial = layers * (gather + product);
      const left = 84;
      const wide = (canvas.width - left - 2) / (layers * (gather + microseconds(MAX_ROWS))); // the same scale for any number of rows
      const at = (time) => left + time * wide;
      const [row, pitch] = [30, 38];
      canvas.height(3 * pitch + 44);
      ["links", "units", "sends alone"].forEach((words, k) => {
        canvas.text(left - 8, k * pitch + row / 2, words, { textAnchor: "end", fontSize: 12 });
        canvas.rect(left, k * pitch, end * wide, row, "faint");
      });
      const named = (x, length, y, words, fill, back) => {
        const found = words.find((word) => length > 7.2 * word.length + 8);
        if (!found) return;
        const size = 6.8 * found.length + 6;
        if (back) canvas.rect(x + (length - size) / 2, y + 6, size, row - 12, back);
        canvas.text(x + length / 2, y + row / 2, found, { fontSize: 12, fill });
      };
      let alone = 0;
      jobs.forEach(({ sent, computed }, k) => {
        const w = `w${k + 1}`;
        crossed(canvas, at(sent), 0, gather * wide - 1, row);
        named(at(sent), gather * wide, 0, [`gather ${w}`, w], "#000", COLORS[1]);
        canvas.rect(at(computed), pitch, product * wide - 1, row, COLORS[0]);
        named(at(computed), product * wide, pitch, [`${k ? "h" : "x"} @ ${w}`, w], "#fff");
        const busy = k && order === EARLY ? Math.min(product, gather) : 0; // the time for which the previous product hides the gather
        alone += gather - busy;
        if (gather - busy < 0.5) return;
        const [length, took] = [(gather - busy) * wide, String(whole(gather - busy))];
        crossed(canvas, at(sent + busy), 2 * pitch, length - 1, row);
        named(at(sent + busy), length, 2 * pitch, [`${took} µs`, took], "#000", COLORS[1]);
      });
      const base = 3 * pitch;
      canvas.line([[at(end), 0], [at(end), base + 4]]);
      canvas.text(at(end) + 1, base + 14, `${whole(end)} µs`, { textAnchor: "end", fontSize: 12, fontWeight: 600 });
      canvas.text(left, base + 14, "0", { fontSize: 12 });
      if (order === EARLY) {
        canvas.line([[at(serial), 0], [at(serial), base + 20]], "ink", { strokeDasharray: "3 3", strokeWidth: 1 });
        const words = `one after the other: ${whole(serial)} µs`;
        canvas.text(Math.max(at(serial) + 1, 166), base + 32, words, { textAnchor: "end", fontSize: 12 });
      }
      const lesson = layers === 2 && (rows === N || rows === N / 4);
      return (
        `A gather takes ${whole(gather)} µs, a product ${whole(product)}. ` +
        (order === EARLY
          ? `The chip computes nothing during ${whole(alone)} of its ${whole(layers * gather)} µs of sending; ` +
            `products hide the rest. The step takes ${whole(end)} µs; ` +
            `with gathers and products one after the other, it would take ${whole(serial)}. `
          : `The chip computes nothing during all ${whole(alone)} µs of sending. ` +
            `The step takes ${whole(end)} µs. `) +
        `(An estimate from the data sheet${lesson ? "" : ", assuming that the compiler's plan stays the same"}.)`
      );
    },
  });
})();
