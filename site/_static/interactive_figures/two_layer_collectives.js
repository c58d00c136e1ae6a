// Lesson 04: draw two layers whose weights are split by columns or rows along y, and one device's activations between them.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const WAYS = ["columns", "rows"];

  // The collective between the two products, by the splits of w1 and w2, and the bytes that each of the 4 devices along y sends:
  // 3 b in an all-gather of pieces of b bytes, and in an all-to-all of b bytes 3/4 b, or 2 * 3/4 b in an all-reduce. The
  // batch is split over x: 32 rows of 512 hidden features or 128 results, 4 bytes each.
  const HIDDEN = 4 * 32 * 512;
  const RESULT = 4 * 32 * 128;
  const BETWEEN = {
    "columns, columns": ["all-gather", (3 * HIDDEN) / 4],
    "columns, rows": null,
    "rows, columns": ["all-reduce", 2 * (3 / 4) * HIDDEN],
    "rows, rows": ["all-to-all", (3 / 4) * HIDDEN],
  };
  const WHY = {
    "columns, columns": "Each device computes a quarter of the hidden columns, but its columns of w2 need all of them.",
    "columns, rows": "Each device computes exactly the hidden columns that its rows of w2 need. Only the results are summed.",
    "rows, columns": "With a quarter of w1's rows, each device computes partial sums of complete hidden rows. They are summed before relu.",
    "rows, rows": "Each device receives the partial sums of its hidden columns and adds them up. The results are partial sums, too.",
  };
  const bytes = (value) => value.toLocaleString("en");

  interactiveFigures.define("two_layer_collectives", {
    title: "Try it: two layers, split by columns or by rows",
    asks: { cheapest: ({ w1, w2 }) => w1 !== w2 && "partly" }, // hiding only the cheapest would give it away
    controls: () => ({
      w1: choice("w1 by", WAYS),
      w2: choice("w2 by", WAYS),
      device: range("device", 0, 7, 5),
    }),
    draw({ w1, w2, device }, canvas, counted, unanswered) {
      const hidesCosts = unanswered.length > 0;
      const way = `${w1}, ${w2}`;
      const between = BETWEEN[way];
      const [i, j] = [Math.floor(device / 4), device % 4]; // its coordinates along x and y
      const color = COLORS[device];
      const gap = 28;
      const unit = Math.min(46, (canvas.width - 2 * gap - 2) / 9.5);
      const [SHORT, LONG, EXAMPLES] = [1.5 * unit, 4 * unit, unit]; // for 128, 512 and 64, not to scale

      // Draw a matrix that's split into parts. `own` = [row, column] is the device's part; null means the entire axis.
      const SHAPES = { x: [64, 128], w1: [128, 512], w2: [512, 128], hidden: [64, 512], result: [64, 128] };
      const matrix = (x, middle, wide, high, name, [down, across], own, { partial = false, used } = {}) => {
        const y = middle - high / 2;
        const piece = ([row, column], more) => {
          const [w, h] = [column === null ? wide : wide / 4, row === null ? high : high / down];
          canvas.rect(x + (column ?? 0) * w, y + (row ?? 0) * h, w, h, color, more);
        };
        canvas.rect(x, y, wide, high, "faint", { fillOpacity: 0.5 });
        piece(own, { fillOpacity: partial || used ? 0.35 : 1 });
        if (used) piece(used, {});
        for (let k = 1; k < down; k++) {
          const border = y + (k / down) * high;
          canvas.line([[x, border], [x + wide, border]], "ink", { strokeWidth: 0.7 });
        }
        for (let k = 1; k < across; k++) {
          const border = x + (k / across) * wide;
          canvas.line([[border, y], [border, y + high]], "ink", { strokeWidth: 0.7 });
        }
        canvas.rect(x, y, wide, high, "none", { stroke: "ink", strokeWidth: 1.4 });
        const shape = SHAPES[name] && canvas.width > 500 ? ` (${SHAPES[name].join(", ")})` : "";
        canvas.text(x + wide / 2, y - 10, name + shape, { fontSize: 12 });
        if (partial) canvas.text(x + wide / 2, y + high + 10, "partial sums", { fontSize: 12 });
      };
      const sign = (x, y, words) => canvas.text(x + gap / 2, y, words, { fontSize: 15 });

      const byColumns = (way) => way === "columns";
      const first = 22 + SHORT / 2;
      const wideOf = SHORT + LONG + LONG + 2 * gap;
      const left = (canvas.width - wideOf) / 2;
      matrix(left, first, SHORT, EXAMPLES, "x", [2, 1], [i, null], { used: byColumns(w1) ? undefined : [i, j] });
      sign(left + SHORT, first, "@");
      const at1 = left + SHORT + gap;
      matrix(at1, first, LONG, SHORT, "w1", byColumns(w1) ? [1, 4] : [4, 1], byColumns(w1) ? [null, j] : [j, null]);
      sign(at1 + LONG, first, "=");
      const made = at1 + LONG + gap;
      const cut = byColumns(w1) ? { own: [i, j], parts: [2, 4] } : { own: [i, null], parts: [2, 1] };
      matrix(made, first, LONG, EXAMPLES, "hidden", cut.parts, cut.own, { partial: !byColumns(w1) });

      const second = first + SHORT / 2 + 66 + LONG / 2;
      const turn = first + SHORT / 2 + 34;
      const down = second - EXAMPLES / 2 - 20;
      const [from, to] = [made + LONG / 2, left + LONG / 2];
      canvas.line([[from, turn - (byColumns(w1) ? 32 : 14)], [from, turn], [to, turn]]);
      canvas.arrow([to, turn], [to, down]);
      const words = between ? `${between[0]}: ${bytes(between[1])} bytes` : "nothing is sent";
      if (!hidesCosts) canvas.text((from + to) / 2, turn - 9, words, { fontSize: 12, fontWeight: 700 });

      const taken = byColumns(w2) ? { own: [i, null], parts: [2, 1] } : { own: [i, j], parts: [2, 4] };
      matrix(left, second, LONG, EXAMPLES, "relu(hidden)", taken.parts, taken.own);
      sign(left + LONG, second, "@");
      const at2 = left + LONG + gap;
      matrix(at2, second, SHORT, LONG, "w2", byColumns(w2) ? [1, 4] : [4, 1], byColumns(w2) ? [null, j] : [j, null]);
      sign(at2 + SHORT, second, "=");
      const out = at2 + SHORT + gap;
      const result = byColumns(w2) ? { own: [i, j], parts: [2, 4] } : { own: [i, null], parts: [2, 1] };
      matrix(out, second, SHORT, EXAMPLES, "result", result.parts, result.own, { partial: !byColumns(w2) });
      const last = second + LONG / 2 + 18;
      const sum = byColumns(w2) ? "nothing is sent" : `all-reduce: ${bytes(2 * (3 / 4) * RESULT)} bytes`;
      canvas.arrow([out + SHORT / 2, second + EXAMPLES / 2 + 20], [out + SHORT / 2, last - 12]);
      if (!hidesCosts) canvas.text(out + SHORT / 2 + 4, last, sum, { fontSize: 12, fontWeight: 700, textAnchor: "middle" });
      canvas.height(last + 10);

      const { collectives, sent } = counted[way];
      const used = byColumns(w1) ? "" : ", which uses only a quarter of its x";
      const marked = `Colour marks what device ${device} stores or computes${used}.`;
      const costs = `${collectives}, ${bytes(sent)} bytes sent by each device. ${WHY[way]}`;
      return `w1 by ${w1}, w2 by ${w2}${hidesCosts ? "." : `: ${costs}`} ${marked}`;
    },
  });
})();
