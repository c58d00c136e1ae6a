// Lesson 02: draw any spec on any 2-axis mesh of the eight devices. Colours are pieces of the array, and circles are devices.
(() => {
  const { range, choice, text, COLORS } = interactiveFigures;

  // Parse a spec such as "P(('x', 'y'), None)". For each array axis, return a name, null, or an array of names.
  const read = (typed) => {
    const plain = typed.replace(/[‘’“”"]/g, "'").trim();
    const inside = plain.match(/^P\s*\((?!\s*,)(.*)\)$/s)?.[1];
    const bare = inside?.replace(/\(\s*(None|\([^()]*\))\s*\)/g, "$1"); // (None) is None
    const json = bare?.replace(/\(/g, "[").replace(/\)/g, "]").replace(/,\s*(?=\]|$)/g, "");
    try {
      const spec = JSON.parse(`[${json.replace(/\bNone\b/g, "null").replace(/'/g, '"')}]`);
      const fits = (entry) => entry === null || (typeof entry === "string" && entry);
      if (spec.every((entry) => (Array.isArray(entry) ? entry.every(fits) : fits(entry)))) return spec;
    } catch {
      // it isn't a spec: explain the notation, as below
    }
    const how = "Put names in quotes, and several names in a tuple: P('x', None), P(('x', 'y')).";
    throw new Error(`This isn't a valid spec. ${how}`);
  };

  const names = (entry) => (Array.isArray(entry) ? entry : entry === null ? [] : [entry]).map((name) => name ?? "None");
  const quoted = (name) => (name === "None" ? name : `'${name}'`);
  const written = (spec) => {
    const one = (found) => (found.length > 1 ? `(${found.map(quoted).join(", ")})` : quoted(found[0] ?? "None"));
    return `P(${spec.map((entry) => one(names(entry))).join(", ")})`;
  };
  const shown = (sizes) => `(${sizes.join(", ")})`;
  // Return the array's type on explicit axes, as jax.typeof prints it, such as float32[4@x,8@(x,y)].
  const typeOf = (shape, spec) => {
    const at = (found) => (found.length > 1 ? `@(${found.join(",")})` : found.length ? `@${found[0]}` : "");
    return `float32[${shape.map((size, axis) => `${size}${at(names(spec[axis] ?? null))}`).join(",")}]`;
  };

  // Return the reason why JAX 0.10.2 refuses a spec, or "" if it accepts it. The order of the checks is JAX's.
  const refusal = (spec, sizes, shape) => {
    const all = spec.flatMap(names);
    const again = [...new Set(all)].filter((name) => all.indexOf(name) < all.lastIndexOf(name)).sort().join(" and ");
    const strange = all.find((name) => !(name in sizes));
    const ways = spec.map((entry) => names(entry).reduce((product, name) => product * sizes[name], 1));
    const axis = ways.findIndex((n, i) => shape[i] % n);
    const reasons = [
      [again, `DuplicateSpecError: a mesh axis can split at most one array axis; duplicate entries for ${again}.`],
      [strange, `ValueError: ${strange} is not found in the mesh, ('x', 'y').`],
      [spec.length > shape.length, `ValueError: only valid for a rank of at least ${spec.length}; this array has 2.`],
      [axis >= 0, `IndivisibleError: array axis ${axis} is split ${ways[axis]} ways, but its size is ${shape[axis]}.`],
    ];
    return reasons.find(([so]) => so)?.[1] ?? "";
  };

  // Return the range of each array axis on the device at these mesh coordinates. A tuple's first name makes the largest pieces.
  const piece = (spec, sizes, shape, places) =>
    shape.map((size, axis) => {
      let [start, length] = [0, size];
      for (const name of names(spec[axis] ?? null)) {
        length /= sizes[name];
        start += places[name] * length;
      }
      return [start, start + length];
    });
  const where = (found) => `[${found.map(([start, stop]) => `${start}:${stop}`).join(", ")}]`;

  // Draw circles side by side in a box, in the number of rows that makes them largest.
  const circles = (canvas, [x, y, width, height], devices, color, chosen) => {
    const fits = (r) => Math.min(height / r, (width * r) / devices.length);
    const rows = [1, 2, 4, 8].filter((r) => devices.length % r === 0).reduce((a, b) => (fits(b) > fits(a) ? b : a));
    const step = Math.min(fits(rows), 34);
    const columns = devices.length / rows;
    devices.forEach((device, i) => {
      const cx = x + width / 2 + ((i % columns) - (columns - 1) / 2) * step;
      const cy = y + height / 2 + (Math.floor(i / columns) - (rows - 1) / 2) * step;
      const look = { stroke: color, strokeWidth: step > 20 ? 2 : 1.4 };
      canvas.circle(cx, cy, 0.43 * step - 1, device === chosen ? "ink" : "ground", look);
      const letters = { fontSize: step > 24 ? 13 : 11, fontWeight: 600, fill: device === chosen ? "ground" : "ink" };
      canvas.text(cx, cy, device, letters);
    });
  };

  // Return the reader's settings: the mesh's sizes, the array's shape, the spec if it can be parsed, and any error.
  const understood = ({ typed, grid, array }) => {
    const [x, y] = grid.split(" by ").map(Number);
    const shape = array.match(/\d+/g).map(Number);
    try {
      const spec = read(typed);
      return { sizes: { x, y }, shape, spec, problem: refusal(spec, { x, y }, shape) };
    } catch (error) {
      return { sizes: { x, y }, shape, spec: null, problem: error.message };
    }
  };
  // Return the spec without trailing Nones, if the mesh is the lesson's.
  const asked = (values) => {
    const { spec } = understood(values);
    return spec && values.grid === "2 by 4" ? written(spec).replace(/(, None)+\)$/, ")") : "";
  };

  interactiveFigures.define("mesh_sharding", {
    title: "Try it: split an array with your own spec",
    asks: {
      first_cut: (values) => asked(values) === "P('x', 'y')" && values.array === "(4, 8)",
      half_cut: (values) => asked(values) === "P('x')",
      tuple_order: (values) => asked(values) === "P(None, ('y', 'x'))",
      ten_over_four: (values) => understood(values).problem.startsWith("IndivisibleError"),
    },
    controls: () => ({
      typed: text("spec", "P('x', 'y')", { size: 20 }),
      grid: choice("mesh", ["2 by 4", "4 by 2", "8 by 1", "1 by 8"], "4 by 2"),
      array: choice("array", ["(4, 8)", "(8, 8)", "(10, 3)", "(12, 3)"]),
      device: range("device", 0, 7, 6),
    }),
    draw(values, canvas) {
      const { array, device } = values;
      const { sizes, shape, spec, problem } = understood(values);
      const { x: rows, y: columns } = sizes;
      const places = (d) => ({ x: Math.floor(d / columns), y: d % columns });
      const held = [...Array(8).keys()].map((d) => (problem ? null : piece(spec, sizes, shape, places(d))));
      const order = (one, other) => one[0][0] - other[0][0] || one[1][0] - other[1][0];
      const pieces = problem ? [] : [...new Map(held.map((found) => [where(found), found])).values()].sort(order);
      const color = (d) => (problem ? "#999999" : COLORS[pieces.findIndex((found) => where(found) === where(held[d]))]);

      // Draw the mesh: each device at its coordinates, in the colour of its piece.
      const stacked = canvas.width < 520 && columns > 1;
      const cell = Math.min(42, 288 / rows, ((stacked ? 1 : 0.4) * canvas.width - 44) / columns);
      const [left, top] = [36, 46];
      const number = (x, y, one, [down, across]) => {
        const small = { fontSize: 11, opacity: 0.75 };
        for (let j = 0; j < across; j++) canvas.text(x + (j + 0.5) * one, y - 10, j, small);
        for (let i = 0; i < down; i++) canvas.text(x - 10, y + (i + 0.5) * one, i, small);
      };
      const mono = { fontSize: 13, fontFamily: "monospace" };
      const bold = { fontSize: 12, textAnchor: "start", fontWeight: 600 };
      canvas.text(0, 9, "mesh", bold);
      canvas.text(left + (columns * cell) / 2, 20, "y", mono);
      canvas.text(10, top + (rows * cell) / 2, "x", mono);
      number(left, top, cell, [rows, columns]);
      for (let d = 0; d < 8; d++) {
        const box = [left + places(d).y * cell, top + places(d).x * cell, cell, cell];
        canvas.rect(...box, color(d), { fillOpacity: 0.35, stroke: "ink", strokeWidth: 1 });
        circles(canvas, box, [d], color(d), device);
      }
      const at = places(device);
      canvas.rect(left + at.y * cell, top + at.x * cell, cell, cell, "none", { stroke: "ink", strokeWidth: 3 });

      // Draw the array: its pieces, each with the devices that hold it.
      const x0 = stacked ? left : left + columns * cell + Math.min(60, 24 + canvas.width / 12);
      const y0 = stacked ? top + rows * cell + 62 : top;
      const unit = Math.min(46, 288 / shape[0], (canvas.width - x0 - 2) / shape[1]);
      const [wide, high] = [shape[1] * unit, shape[0] * unit];
      canvas.height(Math.max(top + rows * cell, y0 + high) + 6);
      canvas.text(stacked ? 0 : x0 - 18, y0 - 37, `array ${array}`, bold);
      number(x0, y0, unit, shape);
      const sharing = (found) => [...Array(8).keys()].filter((d) => where(held[d]) === where(found));
      const boxes = pieces.map(([[a, b], [c, d]]) => [x0 + c * unit, y0 + a * unit, (d - c) * unit, (b - a) * unit]);
      boxes.forEach((box, i) => canvas.rect(...box, COLORS[i], { fillOpacity: 0.35 }));
      const thin = (points) => canvas.line(points, "faint", { strokeWidth: 1 });
      for (let j = 1; j < shape[1]; j++) thin([[x0 + j * unit, y0], [x0 + j * unit, y0 + high]]);
      for (let i = 1; i < shape[0]; i++) thin([[x0, y0 + i * unit], [x0 + wide, y0 + i * unit]]);
      canvas.rect(x0, y0, wide, high, "none", { stroke: "ink" });
      boxes.forEach((box, i) => {
        canvas.rect(...box, "none", { stroke: "ink", strokeWidth: 1.4 });
        circles(canvas, box, sharing(pieces[i]), COLORS[i], device);
        const inner = [box[0] + 1, box[1] + 1, box[2] - 2, box[3] - 2];
        if (where(pieces[i]) === where(held[device])) canvas.rect(...inner, "none", { stroke: "ink", strokeWidth: 3 });
      });
      if (problem) {
        canvas.rect(x0 + wide / 2 - 36, y0 + high / 2 - 12, 72, 24, "ground", { stroke: "ink", rx: 4 });
        canvas.text(x0 + wide / 2, y0 + high / 2, spec ? "rejected" : "no spec");
        return spec ? `JAX rejects ${written(spec)}. ${problem}` : problem;
      }
      const many = pieces.length < 8 ? `${8 / pieces.length} copies` : "1 copy";
      const size = shown(pieces[0].map(([start, stop]) => stop - start));
      const layout =
        pieces.length > 1 ? `${pieces.length} pieces of ${size}, ${many} of each` : `replicated, ${many} of ${size}`;
      const others = sharing(held[device]).filter((d) => d !== device);
      const also = `, as ${others.length > 1 ? "do devices" : "does device"} ${others.join(", ")}`;
      const it = `Device ${device} is at x = ${at.x}, y = ${at.y} and stores ${where(held[device])}`;
      return `${written(spec)} gives ${typeOf(shape, spec)}: ${layout}. ${it}${others.length ? also : ""}.`;
    },
  });
})();
