// Lesson 05: show which devices' numbers contribute to one device's result of a collective, as in the lesson's NumPy code.
(() => {
  const { range, choice, COLORS, LETTERS } = interactiveFigures;
  const ALL = [0, 1, 2, 3, 4, 5, 6, 7];
  const sum = (values) => values.reduce((a, b) => a + b);

  // `from`: the lesson's array that the collective is applied to, v (one number per device) or t (eight per device).
  // `takes(d)`: the numbers that contribute to device d's result, as [device, index in its part]. `join`: the function that
  // combines them.
  const each = (place) => ALL.map((device) => [device, place]);
  const many = (values) => values;
  const KINDS = {
    psum: { from: "v", takes: () => each(0), join: (values) => [sum(values)] },
    pmean: { from: "v", takes: () => each(0), join: (values) => [sum(values) / 8] },
    pmax: { from: "v", takes: () => each(0), join: (values) => [Math.max(...values)] },
    "ppermute, 7 pairs": { from: "v", takes: (d) => (d ? [[d - 1, 0]] : []), join: (v) => (v.length ? v : [0]) },
    "ppermute, 8 pairs": { from: "v", takes: (d) => [[(d + 7) % 8, 0]], join: many },
    all_gather: { from: "v", takes: () => each(0), join: many },
    psum_scatter: { from: "t", takes: (d) => each(d), join: (values) => [sum(values)] },
    all_to_all: { from: "t", takes: (d) => each(d), join: many },
  };
  const INTO = "into its result";

  const told = (name, d, into, part, result, takers) => {
    const from = KINDS[name].takes(d);
    const eight = KINDS[name].from === "t";
    if (into) {
      const who = !from.length
        ? "No number arrives, because no pair names this device as the receiver."
        : from.length === 1
          ? `It uses only the number of device ${from[0][0]}.`
          : eight
            ? `The result uses element ${d} of each of the eight parts.`
            : "It uses the numbers of all eight devices.";
      return `${name}: device ${d} gets ${result.join(" ")}. ${who}`;
    }
    if (!takers.length) return `${name}: the ${part[0]} of device ${d} is in no result, because no pair names this device as the sender.`;
    const numbers = `device ${d}'s numbers ${part.join(" ")}`;
    if (eight) return `${name}: element j of ${numbers} goes into the result of device j.`;
    const where = takers.length === 1 ? `result of device ${takers[0]} only` : "results of all eight devices";
    return `${name}: the ${part[0]} of device ${d} goes into the ${where}.`;
  };

  interactiveFigures.define("collective_result", {
    title: "Try it: trace where each number goes",
    asks: { scattered: ({ name }) => name === "psum_scatter" },
    controls: () => ({
      name: choice("collective", Object.keys(KINDS), "all_to_all"),
      d: range("device", 0, 7, 5),
      arrows: choice("arrows", [INTO, "out of its numbers"]),
    }),
    draw({ name, d, arrows }, canvas, numbers) {
      const { from, takes, join } = KINDS[name];
      const before = numbers[from];
      const into = arrows === INTO;
      const takers = ALL.filter((other) => takes(other).some(([device]) => device === d));
      const receivers = into ? [d] : takers;
      const used = new Set(receivers.flatMap((to) => takes(to).filter(([device]) => into || device === d).map(String)));
      const results = ALL.map((to) => join(takes(to).map(([device, place]) => before[device][place])));

      const wide = canvas.width >= 520;
      const left = wide ? 100 : 0;
      const column = (canvas.width - left) / 8;
      const box = column - (wide ? 10 : 5);
      const row = 20;
      const at = (device) => left + device * column + (column - box) / 2;
      const top = wide ? 26 : 44;
      const second = top + before[0].length * row + 92;
      const bottom = second + results[0].length * row;
      canvas.height(bottom + (wide ? 8 : 22));

      const caption = (words, y, narrow) => {
        if (!wide) return canvas.text(0, narrow, words, { textAnchor: "start", fontSize: 12 });
        const lines = words.split(", ");
        const first = y - (lines.length - 1) * 7.5;
        lines.forEach((line, i) => canvas.text(left - 10, first + i * 15, line, { textAnchor: "end" }));
      };
      caption("before", top + (before[0].length * row) / 2, 8);
      caption(name, (second + bottom) / 2, bottom + 13);
      for (const device of ALL) {
        const here = { fontSize: wide ? 12 : 11, fontWeight: device === d ? 700 : 400 };
        canvas.text(at(device) + box / 2, top - 16, wide ? `device ${device}` : device, here);
        canvas.rect(at(device), top - 7, box, 4, COLORS[device]);
      }
      // As in the lesson's figures, a number has its device's colour, and a computed number has none. `strong` marks the
      // numbers that the arrows connect.
      const cell = (device, i, y, value, owner, strong) => {
        const fill = owner === undefined ? "ground" : COLORS[owner];
        canvas.rect(at(device), y + i * row, box, row, fill, { fillOpacity: strong || owner === undefined ? 1 : 0.3 });
        const edge = { stroke: "ink", ...(strong ? { strokeWidth: 2 } : { strokeWidth: 0.5, strokeOpacity: 0.6 }) };
        canvas.rect(at(device) + 0.5, y + i * row + 0.5, box - 1, row - 1, "none", edge);
        const letters = strong && owner !== undefined ? LETTERS[owner] : "ink";
        canvas.text(at(device) + box / 2, y + (i + 0.53) * row, value, { fill: letters, fontSize: wide ? 13 : 12 });
      };
      for (const device of ALL) {
        before[device].forEach((value, i) => cell(device, i, top, value, device, used.has(`${device},${i}`)));
        const taken = takes(device);
        const single = results[device].length === 1;
        results[device].forEach((value, i) => {
          const owner = single ? taken.find(([from, place]) => before[from][place] === value) : taken[i];
          const fresh = ["psum", "pmean", "psum_scatter"].includes(name);
          const strong = receivers.includes(device) && (into || single || owner[0] === d);
          cell(device, i, second, value, fresh ? undefined : owner?.[0], strong);
        });
      }
      const pairs = into ? takes(d).map(([device]) => [device, d]) : takers.map((to) => [d, to]);
      pairs.forEach(([device, to], i) => {
        const spread = pairs.length > 1 ? at(d) + ((i + 0.5) / 8) * box : at(d) + box / 2;
        const [start, end] = into ? [at(device) + box / 2, spread] : [spread, at(to) + box / 2];
        const from = [start, second - 88];
        if (device === to) canvas.line([from, [end, second - 10]], "ink", { strokeDasharray: "4 4" });
        canvas.arrow(device === to ? [end + (start - end) / 14, second - 10] : from, [end, second - 4]);
      });
      const stays = pairs.some(([device, to]) => device === to) ? " The dashed arrow stays on the device." : "";
      return told(name, d, into, before[d], results[d], takers) + stays;
    },
  });
})();
