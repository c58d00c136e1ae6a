// Lesson 03: a row of its table of products, by one device's part. Specs, collectives, bytes and FLOPs are the table's.
// What a device multiplies follows from them: the rows of a and the columns of b that it holds; of the contraction the
// stretch along the axis of the all-reduce, or else all. So do the compiled programs of JAX 0.10.2.
(() => {
  const { range, COLORS } = moving;
  const SIZE = 64;
  const HELD = COLORS[0];
  const ARRIVES = COLORS[1];
  const RESULT = COLORS[2];
  const MARK = "#d6336c"; // of the contraction

  const stretch = (axis, { x, y }) =>
    axis === "x" ? [x * 32, x * 32 + 32] : axis === "y" ? [y * 16, y * 16 + 16] : [0, SIZE];
  const entries = (spec) => [...spec.slice(2, -1).split(", "), "None"].map((entry) => entry.match(/[xy]/)?.[0]);
  const parts = (row, device) => {
    const places = { x: Math.floor(device / 4), y: device % 4 };
    const [[rows, across], [down, columns]] = [entries(row.a), entries(row.b)];
    const summed = row.collectives.match(/all-reduce \((.)\)/)?.[1];
    const [m, k, n] = [rows, summed, columns].map((axis) => stretch(axis, places));
    return { a: [m, stretch(across, places)], b: [stretch(down, places), n], m, k, n, summed };
  };
  const long = ([start, stop]) => stop - start;
  const both = ([a, b], [c, d]) => [Math.max(a, c), Math.max(a, c, Math.min(b, d))];
  const where = (part) => `[${part.map(([start, stop]) => `${start}:${stop}`).join(", ")}]`;
  const area = ([rows, columns]) => long(rows) * long(columns);
  const count = (number) => number.toLocaleString("en");

  moving.picture("product", {
    title: "Try it: a row of the table, one device's part",
    controls: (rows) => ({
      chosen: range("row", 0, rows.length - 1, 2),
      device: range("device", 0, 7, 5),
    }),
    draw({ chosen, device }, canvas, table) {
      const row = table[chosen];
      const { a, b, m, k, n, summed } = parts(row, device);
      const gap = canvas.width < 280 ? 24 : 36;
      const side = Math.min(176, Math.floor((canvas.width - gap) / 2));
      const unit = side / SIZE;
      const [x0, y0] = [Math.floor((canvas.width - 2 * side - gap) / 2), 40];
      const [x1, y1] = [x0 + side + gap, y0 + side + 58];
      canvas.height(y1 + side + 28);

      // An operand: its cuts, what the device holds of it, and what it multiplies.
      const box = (x, y, [[top, bottom], [left, right]]) =>
        [x + left * unit, y + top * unit, (right - left) * unit, (bottom - top) * unit];
      const square = (x, y, title, words, rowsCut, columnsCut) => {
        canvas.text(x + side / 2, y - 27, title, { fontWeight: 600 });
        canvas.text(x + side / 2, y - 11, words, { fontSize: 11 });
        canvas.rect(x, y, side, side, "ground");
        const ways = { x: 2, y: 4 };
        for (let i = 1; i < (ways[rowsCut] ?? 1); i++) {
          const at = y + (i * side) / ways[rowsCut];
          canvas.line([[x, at], [x + side, at]], "ink", { strokeWidth: 1, opacity: 0.35 });
        }
        for (let i = 1; i < (ways[columnsCut] ?? 1); i++) {
          const at = x + (i * side) / ways[columnsCut];
          canvas.line([[at, y], [at, y + side]], "ink", { strokeWidth: 1, opacity: 0.35 });
        }
        canvas.rect(x, y, side, side, "none", { stroke: "ink", strokeWidth: 1 });
      };
      const mark = ([left, top, wide, high]) => {
        canvas.circle(left + wide / 2, top + high / 2, 10, "ground", { stroke: "ink", strokeWidth: 1.5 });
        canvas.text(left + wide / 2, top + high / 2, device, { fontWeight: 600 });
      };
      const operand = (x, y, name, held, used, cuts) => {
        square(x, y, `${name}: ${row[name]}`, `multiplies (${used.map(long).join(", ")})`, ...cuts);
        canvas.rect(...box(x, y, held), HELD, { fillOpacity: 0.25 });
        canvas.rect(...box(x, y, used), ARRIVES);
        const [left, top, wide, high] = box(x, y, used);
        for (let at = 6 - high; at < wide; at += 7) {
          const ends = [Math.max(at, 0), Math.min(at + high, wide)];
          const points = ends.map((along) => [left + along, top + high - along + at]);
          canvas.line(points, "#000", { strokeWidth: 0.7, opacity: 0.6 });
        }
        canvas.rect(...box(x, y, held.map((along, axis) => both(along, used[axis]))), HELD);
        canvas.rect(...box(x, y, held), "none", { stroke: HELD, strokeWidth: 1.5 });
        canvas.rect(...box(x, y, used), "none", { stroke: "ink", strokeWidth: 2 });
        mark(box(x, y, used));
      };
      operand(x0, y1, "a", a, [m, k], entries(row.a));
      operand(x1, y0, "b", b, [k, n], entries(row.b));
      const made = `(${long(m)}, ${long(n)}) ${summed ? "partial sums" : "of the result"}`;
      square(x1, y1, "a @ b", made, entries(row.a)[0], entries(row.b)[1]);
      canvas.rect(...box(x1, y1, [m, n]), RESULT, { fillOpacity: summed ? 0.45 : 1 });
      const edge = { stroke: "ink", strokeWidth: 2, strokeDasharray: summed ? "5 4" : "none" };
      canvas.rect(...box(x1, y1, [m, n]), "none", edge);

      // The contraction: along the columns of a, down the rows of b.
      mark(box(x1, y1, [m, n]));
      for (const [from, to] of [k, [k[1], k[0]]]) {
        canvas.arrow([x0 + from * unit, y1 + side + 9], [x0 + to * unit, y1 + side + 9], MARK);
        canvas.arrow([x1 - 10, y0 + from * unit], [x1 - 10, y0 + to * unit], MARK);
      }
      const words = `contraction: ${long(k)} of ${SIZE}`;
      canvas.text(x0, y1 + side + 21, words, { fontSize: 11, fill: MARK, textAnchor: "start" });

      // What the colours mean, and what the table says was sent.
      const key = (i, fill, more, words) => {
        canvas.rect(x0, y0 + i * 18, 12, 12, fill, more);
        canvas.text(x0 + 18, y0 + i * 18 + 6, words, { fontSize: 12, textAnchor: "start" });
      };
      key(0, HELD, {}, "held and used");
      key(1, HELD, { fillOpacity: 0.25 }, "held, not used");
      key(2, ARRIVES, {}, "used, not held");
      key(3, RESULT, { fillOpacity: summed ? 0.45 : 1 }, "its part of a @ b");
      const silent = row.collectives === "nothing";
      const kinds = row.collectives.replace(/ \(\d+ pairs\)/, "").split(" + ");
      (silent ? ["nothing is sent"] : [`sent: ${row.sent} bytes`, ...kinds]).forEach((words, i) => {
        canvas.text(x0, y0 + 84 + i * 16, words, { fontSize: 12, textAnchor: "start", fontWeight: i ? 400 : 600 });
      });

      const lacked = (held, used) => area(used) - area(held.map((along, axis) => both(along, used[axis])));
      const lacks = { a: lacked(a, [m, k]), b: lacked(b, [k, n]) };
      const missing = ["a", "b"].filter((name) => lacks[name]).map((name) => `${count(lacks[name])} of ${name}`);
      const work = (d) => JSON.stringify(Object.entries(parts(row, d)).filter(([name]) => "mkn".includes(name)));
      const same = [...Array(8).keys()].filter((d) => d !== device && work(d) === work(device));
      const has = missing.length ? `Of these it does not hold ${missing.join(" and ")}` : "It holds all of these";
      return (
        `Row ${chosen}, device ${device} multiplies ${where([m, k])} of a by ${where([k, n])} of b: ` +
        `2 · ${long(m)} · ${long(k)} · ${long(n)} = ${row.flops} FLOPs. ` +
        `${has}, and ${same.length ? `devices ${same.join(", ")} do` : "no other device does"} the same work. ` +
        (silent ? "Nothing is sent." : `By the table each device sends ${row.sent} bytes: ${row.collectives}.`)
      );
    },
  });
})();
