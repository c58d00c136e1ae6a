// Lesson 07: show a collective on a ring step by step: the contents of each device's slots, and the blocks sent so far.
(() => {
  const { range, choice, steps, COLORS, LETTERS } = interactiveFigures;
  const wrap = (n, i) => ((i % n) + n) % n;

  // Return device d's sends in step t, as the lesson's code does: [slot, hop] pairs, with hop 1 to the right and -1 to the left.
  const gather = (n, d, t) => [[wrap(n, d - t), 1]];
  const short = (n, d, t) => {
    const right = t < Math.floor(n / 2) ? [[wrap(n, d - t), 1]] : [];
    return t < Math.floor((n - 1) / 2) ? [...right, [wrap(n, d + t), -1]] : right;
  };
  const reduce = (n, d, t) => [[wrap(n, d - 1 - t), 1]];
  const bundle = (n, d, t) => [...Array(n - 1 - t).keys()].map((i) => [wrap(n, d + 1 + i), 1]);
  const both = (n, d, t) => (t < n - 1 ? reduce(n, d, t) : gather(n, d, t - n + 1));
  const KINDS = {
    "all-gather, one way": { last: (n) => n - 1, sends: gather },
    "all-gather, short way": { last: (n) => Math.floor(n / 2), sends: short },
    "reduce-scatter": { last: (n) => n - 1, sends: reduce },
    "all-reduce": { last: (n) => 2 * n - 2, sends: both },
    "all-to-all": { last: (n) => n - 1, sends: bundle },
  };
  const isReduction = (name) => name === "reduce-scatter" || name === "all-reduce";

  // A cell is { block, parts, pale }. `parts` is the number of devices whose values are in the sum. `pale` marks a block that
  // will be forwarded to another device.
  const initialCells = (name, n) => {
    const cell = (slot, d) => {
      if (name === "all-to-all") return { block: d, parts: n, pale: slot !== d };
      if (isReduction(name)) return { block: slot, parts: 1 };
      return slot === d ? { block: d, parts: n } : null;
    };
    return [...Array(n).keys()].map((slot) => [...Array(n).keys()].map((d) => cell(slot, d)));
  };

  // Return the state after `step` steps: the cells as [slot][device], the numbers of blocks that a device has sent in each
  // direction, and the last step's sends.
  const run = (name, n, step) => {
    let cells = initialCells(name, n);
    const sent = { 1: [], [-1]: [] };
    let sends = [];
    for (let t = 0; t < step; t++) {
      const next = cells.map((row) => row.map((cell) => cell && { ...cell, fresh: false }));
      const adds = isReduction(name) && t < n - 1;
      sends = [];
      for (let d = 0; d < n; d++) {
        for (const [slot, hop] of KINDS[name].sends(n, d, t)) sends.push({ slot, hop, from: d, to: wrap(n, d + hop) });
      }
      // Unlike in an all-gather, the sender doesn't keep a copy.
      if (adds || name === "all-to-all") for (const { slot, from } of sends) next[slot][from] = null;
      for (const { slot, from, to } of sends) {
        const { block, parts } = cells[slot][from];
        if (adds) next[slot][to] = { block, parts: parts + cells[slot][to].parts, fresh: true };
        // A block that has arrived at its target leaves the bundle.
        else if (name === "all-to-all" && slot === to) next[block][to] = { block, parts, fresh: true };
        else next[slot][to] = { block, parts, pale: name === "all-to-all", fresh: true };
      }
      for (const hop of [1, -1]) sent[hop].push(sends.filter((send) => send.from === 0 && send.hop === hop).length);
      cells = next;
    }
    return { cells, sent, sends };
  };
  const total = (counts) => counts.reduce((a, b) => a + b, 0);

  const describe = (name, n, step, cells, sent) => {
    const [right, left] = [total(sent[1]), total(sent[-1])];
    const all = right + left;
    const flat = cells.flat();
    const last = KINDS[name].last(n);
    const progress = {
      "all-to-all": `${flat.filter((c) => c && !c.pale).length} of ${n * n} blocks are where they belong`,
      "all-reduce": `${flat.filter((c) => c?.parts === n).length} of ${n * n} slots contain a complete sum`,
      "reduce-scatter": `${flat.filter(Boolean).length} of ${n * n} slots are not empty`,
    }[name];
    const filled = progress ?? `${flat.filter(Boolean).length} of ${n * n} slots are filled`;
    const directions = name === "all-gather, short way" ? `, ${right} to the right and ${left} to the left` : "";
    const fraction = {
      "all-gather, one way": "which is (n - 1)/n.",
      "all-gather, short way": `which is (n - 1)/n, and at most ${right}/${n} over a wire in one direction.`,
      "reduce-scatter": "which is (n - 1)/n.",
      "all-reduce": "which is 2 (n - 1)/n.",
      "all-to-all": n === 2 ? "in one bundle." : `in bundles of ${sent[1].join(", ")}.`,
    }[name];
    const legend = {
      "all-to-all": " Each number names the device that a block comes from. Pale blocks are still on their way.",
      "all-reduce": " Each number tells how many parts are in the sum.",
      "reduce-scatter": " Each number tells how many parts are in the sum.",
    }[name];
    return (
      `${name[0].toUpperCase()}${name.slice(1)}, ${n} devices, after step ${step} of ${last}: ${filled}. ` +
      `Each device has sent ${all} block${all === 1 ? "" : "s"}${directions}: ${all}/${n} of the array` +
      `${step === last ? `, ${fraction}` : "."}${legend ?? ""}`
    );
  };

  interactiveFigures.define("ring_collective", {
    title: "Try it: a collective, step by step",
    controls: () => ({
      name: choice("collective", Object.keys(KINDS), "all-reduce"),
      n: range("devices", 2, 8, 8),
      step: steps("step", ({ name, n }) => KINDS[name].last(n)),
    }),
    draw({ name, n, step }, canvas) {
      const { cells, sent, sends } = run(name, n, step);
      const [left, top, rowHeight] = [22, 38, 26];
      const pitch = (canvas.width - left - 10) / n;
      const gap = Math.min(26, pitch * 0.3);
      const cellWidth = pitch - gap;
      const at = (d) => left + gap / 2 + 2 + d * pitch; // the left edge of a device's cells
      const middle = (slot) => top + (slot + 0.5) * rowHeight;
      canvas.text(0, 9, "slot", { textAnchor: "start", fontSize: 12 });
      canvas.text(at(0) + (n * pitch - gap) / 2, 9, "device", { fontSize: 12 });
      for (let i = 0; i < n; i++) {
        canvas.text(at(i) + cellWidth / 2, 27, i);
        canvas.text(left - 8, middle(i), i, { textAnchor: "end" });
      }
      for (const [slot, row] of cells.entries()) {
        for (const [d, cell] of row.entries()) {
          const box = [at(d), top + slot * rowHeight + 2, cellWidth, rowHeight - 4];
          canvas.rect(...box, cell && !cell.pale ? "#fff" : "ground", { stroke: "faint" });
          if (!cell) continue;
          const opacity = cell.pale ? 0.3 : cell.parts / n;
          canvas.rect(...box, COLORS[cell.block], { fillOpacity: opacity });
          if (cell.fresh && !cell.pale) canvas.rect(...box, "none", { stroke: "ink", strokeWidth: 2 });
          const fill = cell.pale ? "ink" : opacity === 1 ? LETTERS[cell.block] : "#000";
          const number = isReduction(name) ? cell.parts : cell.block;
          canvas.text(at(d) + cellWidth / 2, middle(slot) + 1, number, { fill, fontSize: 12 });
        }
      }
      // Draw this step's sends, from each device to its neighbour, including those between the first and the last device.
      for (const { slot, hop, from, to } of sends) {
        const y = middle(slot);
        const targetY = middle(name === "all-to-all" && slot === to ? wrap(n, to - step) : slot);
        const x = hop > 0 ? at(from) + cellWidth + 3 : at(from) - 3;
        const arrowLength = gap - 6;
        if (from + hop === to) canvas.arrow([x, y], [x + hop * arrowLength, targetY]);
        else {
          canvas.line([[x, y], [x + (hop * arrowLength) / 2, y]]);
          const end = hop > 0 ? at(to) - 3 : at(to) + cellWidth + 3;
          canvas.arrow([end - (hop * arrowLength) / 2, targetY], [end, targetY]);
        }
      }
      // Draw the blocks that a device has sent so far, on a scale that's the same for all collectives. An array has n blocks.
      const bars = name === "all-gather, short way" ? [["right", 1], ["left", -1]] : [["", 1]];
      const base = top + n * rowHeight + 44;
      const maxBlocks = Math.max(2 * (n - 1), (n * (n - 1)) / 2);
      const unit = Math.min(24, (canvas.width - left - 44) / maxBlocks);
      const start = left + 30;
      const caption = `sent by each device: each box is a block${canvas.width > 400 ? "; outlined: sent in this step" : ""}`;
      canvas.text(0, base - 18, caption, { textAnchor: "start", fontSize: 12 });
      for (const [index, [label, hop]] of bars.entries()) {
        const y = base + index * 22;
        canvas.text(start - 6, y + 8, `${label} ${total(sent[hop])}`, { textAnchor: "end", fontSize: 12 });
        const full = total(run(name, n, KINDS[name].last(n)).sent[hop]);
        const before = total(sent[hop].slice(0, -1));
        for (let i = 0; i < full; i++) {
          const done = i < total(sent[hop]);
          const outline = done && i >= before ? { stroke: "ink", strokeWidth: 2 } : { stroke: "faint" };
          canvas.rect(start + i * unit + 1, y, unit - 2, 16, done ? COLORS[7] : "ground", outline);
        }
      }
      const bottom = base + bars.length * 22;
      for (let arrays = 0; arrays * n <= maxBlocks; arrays++) {
        const x = start + arrays * n * unit;
        canvas.line([[x, base - 6], [x, bottom]], "ink", { strokeWidth: 1, strokeDasharray: "3 3" });
        canvas.text(x, bottom + 10, arrays === 1 ? "1 array" : arrays, { fontSize: 12 });
      }
      canvas.height(bottom + 22);
      return describe(name, n, step, cells, sent);
    },
  });
})();
