// Lesson 08: draw the route of a mesh axis through a grid of chips, and count its hops. JAX's orders come from the lesson's
// figures; the reader can also choose other orders.
(() => {
  const { choice, steps, COLORS } = interactiveFigures;
  const JAX = "JAX's";
  const forth = (i, turn, n) => (turn % 2 ? n - 1 - i : i);
  const ORDERS = {
    "row by row": (i, w) => [i % w, Math.floor(i / w)],
    "rows, back and forth": (i, w) => [forth(i % w, Math.floor(i / w), w), Math.floor(i / w)],
    "columns, back and forth": (i, w, h) => [Math.floor(i / h), forth(i % h, Math.floor(i / h), h)],
    "squares of four": (i, w) => {
      const square = Math.floor(i / 4);
      const [x, y] = [[0, 0], [1, 0], [1, 1], [0, 1]][i % 4];
      return [2 * (square % (w / 2)) + x, 2 * Math.floor(square / (w / 2)) + y];
    },
  };
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);
  const hop = ([x0, y0], [x1, y1]) => Math.abs(x1 - x0) + Math.abs(y1 - y0);
  const hopsOf = (line) => line.map((chip, k) => hop(chip, line[(k + 1) % line.length]));

  interactiveFigures.define("pod_ring_routes", {
    title: "Try it: route an axis through the grid",
    controls: (ways) => ({
      name: choice("axis", ways.map((way) => way.name)),
      order: choice("order", [JAX, ...Object.keys(ORDERS)]),
      step: steps("step", ({ name }) => ways.find((way) => way.name === name).lines[0].length),
    }),
    draw({ name, order, step }, canvas, ways) {
      const { lines: known } = ways.find((way) => way.name === name);
      const all = known.flat();
      const [w, h] = [0, 1].map((axis) => Math.max(...all.map((chip) => chip[axis])) + 1);
      const m = known[0].length;
      const own = all.map((_, i) => ORDERS[order]?.(i, w, h));
      const lines = order === JAX ? known : known.map((_, k) => own.slice(k * m, (k + 1) * m));
      const hops = hopsOf(lines[0]); // the same in each group
      const [longest, sum] = [Math.max(...hops), hops.reduce((a, b) => a + b)];

      const beside = canvas.width > 520;
      const apart = beside ? 62 : Math.min(58, (canvas.width - 80) / 3);
      const [radius, edge] = [13, 36];
      const [gridWide, gridHigh] = [(w - 1) * apart + 2 * edge, (h - 1) * apart + 2 * edge];
      const tall = 16 * (w + h - 2) + 58; // the bars' height, which fits the longest possible step
      canvas.height(beside ? Math.max(gridHigh, tall) : gridHigh + tall + 8);
      const from = beside ? 0 : (canvas.width - gridWide) / 2;
      const at = ([x, y]) => [from + edge + x * apart, gridHigh - edge - y * apart]; // the y axis points upwards, as in the figure
      for (let x = 0; x < w; x++) canvas.line([at([x, 0]), at([x, h - 1])], "faint", { strokeWidth: 2 });
      for (let y = 0; y < h; y++) canvas.line([at([0, y]), at([w - 1, y])], "faint", { strokeWidth: 2 });

      // Draw a step as a straight line, or as a curve if the line would pass through other chips.
      const meets = ([x0, y0], [x1, y1]) => gcd(Math.abs(x1 - x0), Math.abs(y1 - y0)) > 1;
      const bend = (a, b) => {
        const [[x0, y0], [x1, y1]] = [at(a), at(b)];
        const by = (0.75 * apart) / Math.hypot(x1 - x0, y1 - y0);
        return [(x0 + x1) / 2 + (y0 - y1) * by, (y0 + y1) / 2 + (x1 - x0) * by];
      };
      lines.forEach((line, i) => {
        line.forEach((a, k) => {
          const b = line[(k + 1) % m];
          const chosen = step === k + 1;
          const d = `M${at(a)}Q${meets(a, b) ? bend(a, b) : at(a)},${at(b)}`;
          const stroke = chosen ? "ink" : COLORS[i];
          canvas.add("path", { d, fill: "none", stroke, strokeWidth: 4, strokeOpacity: !step || chosen ? 1 : 0.3 });
        });
      });
      lines.forEach((line, i) =>
        line.forEach((chip, k) => {
          const [x, y] = at(chip);
          const chosen = step && (k === step - 1 || k === step % m);
          canvas.circle(x, y, radius, "#fff", { stroke: COLORS[i], strokeWidth: 2.5 });
          canvas.text(x, y, k, { fontSize: 12, fill: "#000", fontWeight: chosen ? 700 : 400 });
        }),
      );

      // Draw a column for each step, with a square for each of its hops.
      const [left, top] = beside ? [gridWide + 24, Math.max(0, (gridHigh - tall) / 2)] : [0, gridHigh + 8];
      const column = Math.min(34, (canvas.width - left) / m);
      const floor = top + tall - 24;
      const words = { textAnchor: "start", fontSize: 12 };
      canvas.text(left, floor - 16 * longest - 28, "hops (links) from each chip to the next", words);
      hops.forEach((n, k) => {
        const pale = step && step !== k + 1 ? 0.3 : 1;
        for (let j = 1; j <= n; j++) {
          canvas.rect(left + k * column + 1, floor - 16 * j + 2, column - 3, 14, COLORS[0], { fillOpacity: pale });
        }
        const middle = left + (k + 0.5) * column;
        canvas.text(middle, floor - 16 * n - 8, n, { fontSize: 12, fontWeight: step === k + 1 ? 700 : 400 });
        canvas.text(middle, floor + 12, k, { fontSize: 11 });
      });

      const straight = [0, 1].some((axis) => lines[0].every((chip) => chip[axis] === lines[0][0][axis]));
      const count = (n) => `${n} ${n === 1 ? "hop" : "hops"}`;
      const far = hops.slice(0, step).reduce((a, b) => a + b, 0);
      const now = `Step ${step}, from chip ${step - 1} to chip ${step % m}: ${count(hops[step - 1])}, ${far} so far.`;
      const led = order === JAX ? `${name}, as JAX routes it` : `${name}, in the order that you chose instead of JAX's`;
      const each = lines.length > 1 ? `, the same in each of the ${lines.length} lines` : "";
      const means =
        longest === 1
          ? "Each step is one hop, so the chips form a ring of neighbours."
          : straight
            ? "The line isn't closed, so data must come back over the same wires, " +
              `${count(longest)} at half the rate.`
            : `The longest step is ${count(longest)}. When each chip sends a piece to the next, ` +
              `the ${m} pieces take ${sum} hops in all; in a ring of neighbours, they would take ${m}.`;
      return `${led}: hops ${hops.join(" ")}${each}. ${step ? now : means}`;
    },
  });
})();
