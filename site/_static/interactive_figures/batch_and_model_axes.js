// Lesson 06: show how the batch is split over `data` and the layers over `model`, and how many bytes a device sends along
// each axis, by the lesson's formula.
(() => {
  const { range, COLORS } = interactiveFigures;
  const MESHES = [[8, 1], [4, 2], [2, 4], [1, 8]];
  const NAMES = MESHES.map(([d, m]) => `${d} x ${m}`);

  // As predicted(d, m, B) in the cell hybrid-formula: in an all-reduce of b bytes among n devices, each sends 2 (n - 1) / n b.
  // 58,304 parameters are split over `model`; 128 + 10 biases and the loss are not.
  const predicted = ([d, m], examples) => [
    ((2 * (d - 1)) / d) * 4 * (58304 / m + 128 + 10 + 1),
    ((2 * (m - 1)) / m) * 4 * (examples / d) * (128 + 10 + 128),
  ];
  const PART = { 1: "all weights", 2: "half of each weight", 4: "a quarter of each weight" };
  PART[8] = "an eighth of each weight";
  const bytes = (value) => Math.round(value).toLocaleString("en");
  const kilo = (value) => (value >= 999500 ? bytes(value / 1e3) : String(Number((value / 1e3).toPrecision(3))));

  const hatched = (canvas, x, y, wide, high) => {
    canvas.rect(x, y, wide, high, COLORS[1]);
    for (let at = x - high + 4; at < x + wide; at += 9) {
      const [from, to] = [Math.max(at, x), Math.min(at + high, x + wide)];
      canvas.line([[from, y + high - (from - at)], [to, y + high - (to - at)]], "#fff", { strokeWidth: 1.3 });
    }
  };

  // Draw the devices. They exchange gradients along blue lines, and activations along orange lines.
  const grid = (canvas, [d, m], [along, across], top, high) => {
    const x = (j) => ((j + 0.5) / m) * canvas.width;
    const y = (i) => top + ((i + 0.5) / d) * high;
    for (let j = 0; j < m && d > 1; j++) canvas.line([[x(j), y(0)], [x(j), y(d - 1)]], COLORS[0], { strokeWidth: 4 });
    const dashed = { strokeWidth: 4, strokeDasharray: "7 4" };
    for (let i = 0; i < d && m > 1; i++) canvas.line([[x(0), y(i)], [x(m - 1), y(i)]], COLORS[1], dashed);
    const beside = { fontSize: 12, textAnchor: "start" };
    if (d > 1) canvas.text(x(0) + 16, (y(0) + y(d - 1)) / 2, `${kilo(along)} kB`, beside);
    if (m > 1) canvas.text(canvas.width / 2, y(0) - 18, `${kilo(across)} kB`, { fontSize: 12 });
    for (let device = 0; device < 8; device++) {
      const place = [x(device % m), y(Math.floor(device / m))];
      canvas.circle(...place, 9, "ground", { stroke: "ink", strokeWidth: 1.2 });
      canvas.text(...place, device, { fontSize: 12 });
    }
  };

  interactiveFigures.define("batch_and_model_axes", {
    title: "Try it: split the batch, the model, or both",
    asks: { best_mesh: ({ examples }) => examples >= 880 }, // the question is about 1,024; the answer is the same from 880 on
    controls: () => ({
      mesh: range("data x model", 0, 3, 2, { shown: (value) => NAMES[value] }),
      examples: range("examples", 8, 1024, 128, { step: 8, shown: bytes }),
    }),
    draw({ mesh, examples }, canvas) {
      const sent = MESHES.map((shape) => predicted(shape, examples));
      const sums = sent.map(([along, across]) => along + across);
      const least = sums.indexOf(Math.min(...sums));
      const [d, m] = MESHES[mesh];
      const start = { textAnchor: "start", fontSize: 12 };
      canvas.height(386);

      const both = d > 1 && m > 1;
      canvas.text(0, 8, `${both ? "a column" : "each device"} stores ${PART[m]}`, start);
      grid(canvas, MESHES[mesh], sent[mesh], 26, 150);
      const some = d > 1 ? `${bytes(examples / d)} of ${bytes(examples)}` : `all ${bytes(examples)}`;
      canvas.text(0, 188, `${both ? "a row" : "each device"} processes ${some} examples`, start);

      const left = 48;
      const full = [5e5, 1e6, 2e6].find((size) => Math.max(...sums) <= size);
      const wide = (canvas.width - left - 76) / full;
      const top = 212;
      const row = 28;
      for (let i = 0; i <= 5; i++) {
        const x = left + (i / 5) * full * wide;
        canvas.line([[x, top], [x, top + 4 * row]], "faint", { strokeWidth: 1 });
        if (i % 2 && canvas.width < 400) continue;
        canvas.text(x, top + 4 * row + 10, bytes((i / 5) * (full / 1e3)), { fontSize: 11 });
      }
      sent.forEach(([along, across], i) => {
        const y = top + i * row + 3;
        const bold = i === mesh ? 700 : 400;
        canvas.rect(left, y, along * wide, row - 6, COLORS[0]);
        hatched(canvas, left + along * wide, y, across * wide, row - 6);
        if (i === mesh) canvas.rect(left, y, sums[i] * wide, row - 6, "none", { stroke: "ink", strokeWidth: 2 });
        canvas.text(left - 8, y + row / 2 - 3, NAMES[i], { textAnchor: "end", fontSize: 12, fontWeight: bold });
        const end = `${kilo(sums[i])}${i === least ? " (least)" : ""}`;
        canvas.text(left + sums[i] * wide + 7, y + row / 2 - 3, end, { ...start, fontWeight: bold });
      });
      canvas.text(left, top + 4 * row + 28, "kB that a device sends per step", start);
      const key = top + 4 * row + 50;
      canvas.rect(0, key - 6, 20, 12, COLORS[0]);
      canvas.text(26, key, "along data: gradients", start);
      const other = Math.max(160, canvas.width / 2);
      hatched(canvas, other, key - 6, 20, 12);
      canvas.text(other + 26, key, canvas.width < 330 ? "model: values" : "along model: values", start);

      const [along, across] = sent[mesh].map(bytes);
      return (
        `${NAMES[mesh]}, ${bytes(examples)} examples: by this section's formula, each device sends ${along} bytes ` +
        `along data and ${across} along model, ${bytes(sums[mesh])} in all. Of the four meshes, ${NAMES[least]} sends the least.`
      );
    },
  });
})();
