// Lesson 15: show a KV cache that's sharded over eight devices, and the FLOPs per byte read.
(() => {
  const { range, COLORS } = interactiveFigures;
  const LENGTHS = [0, 16, 32, 64, 128, 256, 512, 1024];

  // The lesson's sizes: an embedding of 96 characters; for each of 2 layers qkv, out, up and down.
  const [LAYERS, WIDTH, HIDDEN] = [2, 64, 256];
  const WEIGHTS = 96 * WIDTH + LAYERS * (3 * WIDTH * WIDTH + WIDTH * WIDTH + 2 * WIDTH * HIDDEN);
  // As in the cell serve-count: the numbers in a row's cache, and the bytes read, at 2 bytes per number. As in the cell
  // serve-rows: the FLOPs per byte.
  const own = (length) => 2 * LAYERS * length * WIDTH;
  const read = (rows, length) => 2 * (WEIGHTS + rows * own(length));
  const perByte = (rows, length) => (rows * (2 * WEIGHTS + 2 * own(length))) / read(rows, length);

  const bytes = (value) => value.toLocaleString("en");
  const short = (value) => {
    const UNITS = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
    const [size, unit] = UNITS.find(([size]) => value >= 0.9995 * size) ?? [0, "bytes"];
    return `${size ? (value / size).toPrecision(3) : value} ${unit}`;
  };
  const FEW = { fontSize: 12 };

  // Rows are split over `data` and heads over `model`, so a device has one head of half the rows.
  const pieces = (canvas, rows, each, top) => {
    const left = 76;
    const wide = (canvas.width - left) / 4;
    for (let head = 0; head < 4; head++) canvas.text(left + (head + 0.5) * wide, top + 8, `head ${head}`, FEW);
    for (const half of [0, 1]) {
      const y = top + 18 + half * 40;
      canvas.text(left - 8, y + 18, `${bytes(rows / 2)} row${rows > 2 ? "s" : ""}`, { ...FEW, textAnchor: "end" });
      for (let head = 0; head < 4; head++) {
        const x = left + head * wide;
        canvas.rect(x + 1, y, wide - 3, 37, each ? COLORS[1] : "faint");
        const letters = { fontSize: 11, fill: each ? "#000" : "ink" };
        canvas.text(x + wide / 2, y + 11, canvas.width > 450 ? `device ${4 * half + head}` : 4 * half + head, letters);
        canvas.text(x + wide / 2, y + 26, short(each), letters);
      }
    }
  };

  const chart = (canvas, rows, length, { chip, corner }, top) => {
    const [left, right, high] = [44, 20, 176];
    const x = (value) => left + (Math.log10(value) / 4) * (canvas.width - left - right);
    const y = (value) => top + high - (Math.log10(value) / 4) * high;
    for (const power of [0, 1, 2, 3, 4]) {
      const value = 10 ** power;
      canvas.line([[x(1), y(value)], [x(1e4), y(value)]], "faint", { strokeWidth: 1 });
      canvas.line([[x(value), y(1)], [x(value), y(1e4)]], "faint", { strokeWidth: 1 });
      canvas.text(left - 6, y(value), bytes(value), { fontSize: 11, textAnchor: "end" });
      canvas.text(x(value), top + high + 12, bytes(value), { fontSize: 11 });
    }
    const many = [...Array(41).keys()].map((i) => 10 ** (i / 10));
    const curve = [...many.filter((n) => n < rows), rows].map((n) => [x(n), y(perByte(n, length))]); // so far
    canvas.line(curve, "ink", { strokeWidth: 2.5 });
    canvas.line([[x(1), y(corner)], [x(1e4), y(corner)]], "ink", { strokeDasharray: "5 4" });
    canvas.text(x(1) + 6, y(corner) - 9, `${chip}: ${corner}`, { fontSize: 11, textAnchor: "start" });
    canvas.circle(x(rows), y(perByte(rows, length)), 6, COLORS[5], { stroke: "ink", strokeWidth: 1.5 });
    canvas.text(0, top - 16, "FLOPs for each byte read", { ...FEW, textAnchor: "start" });
    canvas.text((x(1) + x(1e4)) / 2, top + high + 29, "rows decoded at once", FEW);
  };

  interactiveFigures.define("kv_cache_sharding", {
    title: "Try it: more rows, longer texts",
    controls: () => ({
      doubled: range("rows at once", 1, 13, 3, { shown: (value) => bytes(2 ** value) }),
      which: range("characters in the cache", 0, LENGTHS.length - 1, 1, { shown: (value) => LENGTHS[value] }),
    }),
    asks: {
      cache_share: ({ doubled, which }) => doubled === 3 && LENGTHS[which] === 64,
      rows_needed: ({ doubled, which }) => doubled > 3 && which > 0 && "partly", // with any cache
    },
    draw({ doubled, which }, canvas, numbers, unanswered) {
      const hidesRate = unanswered.includes("rows_needed");
      const [rows, length] = [2 ** doubled, LENGTHS[which]];
      const cache = 2 * rows * own(length);
      const all = read(rows, length);
      const start = { ...FEW, textAnchor: "start" };
      canvas.height(hidesRate ? 180 : 430);

      canvas.text(0, 8, "the cache on 2 x 4 devices", start);
      pieces(canvas, rows, cache / 8, 18);

      canvas.text(0, 130, `read by a single device: ${short(all)}`, start);
      const split = ((2 * WEIGHTS) / all) * canvas.width;
      canvas.rect(0, 141, split, 16, COLORS[0]);
      canvas.rect(split, 141, canvas.width - split, 16, COLORS[1]);
      canvas.text(0, 168, `weights ${short(2 * WEIGHTS)}`, start);
      canvas.text(canvas.width, 168, `cache ${short(cache)}`, { ...FEW, textAnchor: "end" });
      if (!hidesRate) chart(canvas, rows, length, numbers, 212);

      const does = perByte(rows, length);
      const enough = does >= numbers.corner ? "at least" : "less than";
      const rate =
        `${does.toFixed(1)} FLOPs per byte, ${enough} the ${numbers.corner} at which a ${numbers.chip} is limited ` +
        "by computing, by its published rates";
      return (
        `${bytes(rows)} rows of ${length} characters: a cache of ${bytes(cache)} bytes at 2 bytes per number, ` +
        `${bytes(cache / 8)} on each of eight devices. To decode one character of each row, a single device reads ` +
        `${bytes(all)} bytes, including the weights${hidesRate ? "" : `: ${rate}`}.`
      );
    },
  });
})();
