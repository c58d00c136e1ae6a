// Lesson 03: draw one device's part of a product in the lesson's table, from which shardings, collectives, bytes and FLOPs are
// taken. They determine what the device multiplies: its rows of x, or all rows if the columns of w are split; its columns of
// w; and its range of the contracting dimension if partial sums are added up, or else the entire dimension. The compiled
// programs do the same.
(() => {
  const { range, COLORS } = interactiveFigures;
  const SIZES = { B: 64, D: 256, F: 512 };
  const DEVICES = 8;
  const HELD = COLORS[0];
  const ARRIVES = COLORS[1];
  const RESULT = COLORS[2];
  const MARK = "#d6336c"; // the colour of the contracting dimension

  const parts = (row, device) => {
    const stretch = (name, split) => {
      const size = SIZES[name] / DEVICES;
      return split ? [device * size, device * size + size] : [0, SIZES[name]];
    };
    const [[rows, across], [down, columns]] = [row.split.a, row.split.b];
    const { summed } = row;
    const [m, k, n] = [stretch("B", rows && !columns), stretch("D", summed), stretch("F", columns)];
    const held = { a: [stretch("B", rows), stretch("D", across)], b: [stretch("D", down), stretch("F", columns)] };
    return { ...held, m, k, n, summed, splits: [rows && !columns, columns] };
  };
  const long = ([start, stop]) => stop - start;
  const both = ([a, b], [c, d]) => [Math.max(a, c), Math.max(a, c, Math.min(b, d))];
  const where = (part) => `[${part.map(([start, stop]) => `${start}:${stop}`).join(", ")}]`;
  const area = ([rows, columns]) => long(rows) * long(columns);
  const count = (number) => number.toLocaleString("en");

  interactiveFigures.define("sharded_matmul", {
    title: "Try it: one device's share of a product",
    asks: {
      rows_alone: ({ chosen }) => chosen === 3,
      both_split: ({ chosen }) => chosen === 7 || chosen === 1, // both all-reduce y
      gathered: ({ chosen }) => chosen === 4,
    },
    controls: (rows) => ({
      chosen: range("product", 0, rows.length - 1, 8, { shown: (value) => `${rows[value].a} · ${rows[value].b}` }),
      device: range("device", 0, 7, 5),
    }),
    draw({ chosen, device }, canvas, table) {
      const row = table[chosen];
      const { a, b, m, k, n, summed, splits } = parts(row, device);
      const gap = canvas.width < 280 ? 24 : 36;
      const side = Math.min(176, Math.floor((canvas.width - gap) / 2));
      const [x0, y0] = [Math.floor((canvas.width - 2 * side - gap) / 2), 40];
      const [x1, y1] = [x0 + side + gap, y0 + side + 58];
      canvas.height(y1 + side + 28);

      // Draw an operand as a square: how it's split, the part that the device holds, and the part that it multiplies.
      const along = (name, at) => (at * side) / SIZES[name];
      const box = (x, y, [[top, bottom], [left, right]], [down, across]) =>
        [x + along(across, left), y + along(down, top), along(across, right - left), along(down, bottom - top)];
      const square = (x, y, title, words, rowsCut, columnsCut) => {
        canvas.text(x + side / 2, y - 27, title, { fontWeight: 600 });
        canvas.text(x + side / 2, y - 11, words, { fontSize: 11 });
        canvas.rect(x, y, side, side, "ground");
        for (let i = 1; rowsCut && i < DEVICES; i++) {
          const at = y + (i * side) / DEVICES;
          canvas.line([[x, at], [x + side, at]], "ink", { strokeWidth: 1, opacity: 0.35 });
        }
        for (let i = 1; columnsCut && i < DEVICES; i++) {
          const at = x + (i * side) / DEVICES;
          canvas.line([[at, y], [at, y + side]], "ink", { strokeWidth: 1, opacity: 0.35 });
        }
        canvas.rect(x, y, side, side, "none", { stroke: "ink", strokeWidth: 1 });
      };
      const mark = ([left, top, wide, high]) => {
        canvas.circle(left + wide / 2, top + high / 2, 10, "ground", { stroke: "ink", strokeWidth: 1.5 });
        canvas.text(left + wide / 2, top + high / 2, device, { fontWeight: 600 });
      };
      const operand = (x, y, name, held, used, dims) => {
        square(x, y, row[name], `multiplies (${used.map(long).join(", ")})`, ...row.split[name]);
        canvas.rect(...box(x, y, held, dims), HELD, { fillOpacity: 0.25 });
        canvas.rect(...box(x, y, used, dims), ARRIVES);
        const [left, top, wide, high] = box(x, y, used, dims);
        for (let at = 6 - high; at < wide; at += 7) {
          const ends = [Math.max(at, 0), Math.min(at + high, wide)];
          const points = ends.map((end) => [left + end, top + high - end + at]);
          canvas.line(points, "#000", { strokeWidth: 0.7, opacity: 0.6 });
        }
        canvas.rect(...box(x, y, held.map((part, axis) => both(part, used[axis])), dims), HELD);
        canvas.rect(...box(x, y, held, dims), "none", { stroke: HELD, strokeWidth: 1.5 });
        canvas.rect(...box(x, y, used, dims), "none", { stroke: "ink", strokeWidth: 2 });
        mark(box(x, y, used, dims));
      };
      operand(x0, y1, "a", a, [m, k], ["B", "D"]);
      operand(x1, y0, "b", b, [k, n], ["D", "F"]);
      const made = `(${long(m)}, ${long(n)}) ${summed ? "partial sums" : "of y"}`;
      square(x1, y1, "y", made, ...splits);
      canvas.rect(...box(x1, y1, [m, n], ["B", "F"]), RESULT, { fillOpacity: summed ? 0.45 : 1 });
      const edge = { stroke: "ink", strokeWidth: 2, strokeDasharray: summed ? "5 4" : "none" };
      canvas.rect(...box(x1, y1, [m, n], ["B", "F"]), "none", edge);

      // Mark the contracting dimension along the columns of x and the rows of w.
      mark(box(x1, y1, [m, n], ["B", "F"]));
      for (const [from, to] of [k, [k[1], k[0]]]) {
        canvas.arrow([x0 + along("D", from), y1 + side + 9], [x0 + along("D", to), y1 + side + 9], MARK);
        canvas.arrow([x1 - 10, y0 + along("D", from)], [x1 - 10, y0 + along("D", to)], MARK);
      }
      const words = `sums over ${long(k)} of ${SIZES.D}`;
      canvas.text(x0, y1 + side + 21, words, { fontSize: 11, fill: MARK, textAnchor: "start" });

      // Draw the legend, and the bytes sent according to the table.
      const key = (i, fill, more, words) => {
        canvas.rect(x0, y0 + i * 18, 12, 12, fill, more);
        canvas.text(x0 + 18, y0 + i * 18 + 6, words, { fontSize: 12, textAnchor: "start" });
      };
      key(0, HELD, {}, "stored and used");
      key(1, HELD, { fillOpacity: 0.25 }, "stored, not used");
      key(2, ARRIVES, {}, "used, not stored");
      key(3, RESULT, { fillOpacity: summed ? 0.45 : 1 }, "its part of y");
      const silent = row.collectives === "no collective";
      const kinds = row.collectives.split(" + ");
      (silent ? ["nothing is sent"] : [`sent: ${row.sent} bytes`, ...kinds]).forEach((words, i) => {
        canvas.text(x0, y0 + 84 + i * 16, words, { fontSize: 12, textAnchor: "start", fontWeight: i ? 400 : 600 });
      });

      const lacked = (held, used) => area(used) - area(held.map((part, axis) => both(part, used[axis])));
      const lacks = { a: lacked(a, [m, k]), b: lacked(b, [k, n]) };
      const missing = ["a", "b"].filter((name) => lacks[name]).map((name) => `${count(lacks[name])} of ${row[name][0]}`);
      const work = (d) => JSON.stringify(Object.entries(parts(row, d)).filter(([name]) => "mkn".includes(name)));
      const same = [...Array(8).keys()].filter((d) => d !== device && work(d) === work(device));
      const [[rows, across], [down, columns]] = [row.split.a, row.split.b];
      const refused = (rows && columns) || (across && down);
      const has = missing.length ? `Of these, it doesn't store ${missing.join(" and ")}` : "It stores all of these";
      return (
        `${row.a} · ${row.b}: device ${device} multiplies ${where([m, k])} of x by ${where([k, n])} of w: ` +
        `2 · ${long(m)} · ${long(k)} · ${long(n)} = ${row.flops} FLOPs. ` +
        `${has}, and ${same.length ? `devices ${same.join(", ")} do` : "no other device does"} the same work. ` +
        (silent ? "Nothing is sent." : `Each device sends ${row.sent} bytes: ${row.collectives}.`) +
        (refused ? " On explicit axes, JAX asks for out_sharding." : "")
      );
    },
  });
})();
