// Lesson 13: show how many query-key pairs each device computes in each round of the ring, for the lesson's three token
// orders. The mask has a block of rows for each device. A round lasts as long as its slowest device takes.
(() => {
  const { range, choice, steps, COLORS, LETTERS } = interactiveFigures;

  // Return the position of token i on device d, with `own` tokens on each of n devices.
  const PLACE = {
    "in order": (d, i, n, own) => d * own + i,
    striped: (d, i, n) => i * n + d,
    "zig-zag": (d, i, n, own) => (i < own / 2 ? d * (own / 2) + i : (2 * n - 2 - d) * (own / 2) + i),
  };

  // Return how many keys of device e each query of device d attends to. Positions increase within a device, so these are e's
  // first keys.
  const seen = (name, n, own) => {
    const at = [...Array(n).keys()].map((d) => [...Array(own).keys()].map((i) => PLACE[name](d, i, n, own)));
    return at.map((queries) => at.map((keys) => queries.map((query) => keys.filter((key) => key <= query).length)));
  };
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const commas = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 1 });

  interactiveFigures.define("ring_attention_balance", {
    title: "Try it: who works and who waits, round by round",
    controls: () => ({
      name: choice("order", Object.keys(PLACE)),
      n: range("devices", 2, 8, 8),
      own: choice("tokens per device", ["8", "64"]),
      done: steps("rounds done", ({ n }) => n, 8),
    }),
    draw({ name, n, own: words, done }, canvas) {
      const own = Number(words);
      const blocks = seen(name, n, own);
      const rounds = [...Array(n).keys()];
      const pairs = rounds.map((r) => rounds.map((d) => sum(blocks[d][(d - r + n) % n]))); // by round, by device
      const slowest = pairs.map((each) => Math.max(...each));
      const mean = pairs.map((each) => sum(each) / n);

      const wide = canvas.width >= 560;
      const left = 18;
      const top = 40;
      const side = wide ? 304 : canvas.width - left - 2;
      const block = side / n;
      const row = wide ? block : 24;
      const from = wide ? left + side + 34 : left;
      const above = wide ? top : top + side + 44;
      const full = (own * (own + 1)) / 2 + (n - 1) * own * own; // the time that "in order" takes, so that all orders have one scale
      const scale = (canvas.width - from - 2) / full;
      canvas.height(above + n * row + 58);

      const head = (x, y, text) => canvas.text(x, y, text, { textAnchor: "start", fontSize: 12 });
      head(left, 10, "queries down, keys across, by device");
      head(from, above - 30, "pairs, if each round takes");
      head(from, above - 14, "as long as its slowest device");
      for (const d of rounds) {
        canvas.text(left + (d + 0.5) * block, top - 9, d, { fontSize: 12 });
        canvas.text(left - 6, top + (d + 0.5) * block, d, { fontSize: 12, textAnchor: "end" });
        canvas.text(from - 6, above + (d + 0.5) * row, d, { fontSize: 12, textAnchor: "end" });
        for (const e of rounds) {
          const r = (d - e + n) % n;
          const [x, y] = [left + e * block, top + d * block];
          const counts = blocks[d][e];
          if (sum(counts)) {
            const step = block / own;
            const stairs = counts.map((keys, i) => `H${x + keys * step}V${y + (i + 1) * step}`);
            const look = r < done ? { fill: COLORS[r] } : { fill: "faint", fillOpacity: 0.55 };
            canvas.add("path", { d: `M${x},${y}${stairs.join("")}H${x}Z`, ...look });
            canvas.text(x + block / 4, y + block * 0.76, r + 1, { fontSize: 11, fill: r < done ? LETTERS[r] : "ink" });
          }
          canvas.rect(x, y, block, block, "none", { stroke: "faint" });
        }
      }
      const latest = done - 1;
      for (const d of done ? rounds : []) {
        const e = (d - latest + n) % n;
        const outline = { stroke: "ink", strokeWidth: 2 };
        canvas.rect(left + e * block + 1, top + d * block + 1, block - 2, block - 2, "none", outline);
      }

      const all = { slowest: sum(slowest.slice(0, done)), mean: sum(mean.slice(0, done)) };
      const line = from + all.mean * scale;
      let x = from;
      const end = canvas.width - 2;
      const foot = above + n * row;
      if (name !== "in order") {
        canvas.line([[end, above], [end, foot + 40]], "ink", { strokeDasharray: "1 4" });
        canvas.text(end, foot + 48, `slowest in order ${commas(full)}`, { fontSize: 12, textAnchor: "end" });
      }
      for (const r of rounds.slice(0, done)) {
        for (const d of rounds) {
          const y = above + d * row + 2;
          canvas.rect(x, y, slowest[r] * scale - 1, row - 4, "faint");
          canvas.rect(x, y, pairs[r][d] * scale - 1, row - 4, COLORS[r]);
          const text = String(pairs[r][d]);
          const middle = x + (pairs[r][d] * scale) / 2;
          const letters = 7 * text.length + 3;
          if (pairs[r][d] * scale < letters || Math.abs(middle - line) < letters / 2 + 2) continue;
          canvas.text(middle, y + row / 2 - 2, text, { fontSize: 11, fill: LETTERS[r] });
        }
        x += slowest[r] * scale;
      }
      [["mean", all.mean, 12], ["slowest", all.slowest, 30]].forEach(([what, pairs, below]) => {
        if (!done) return;
        const at = from + pairs * scale;
        canvas.line([[at, above], [at, foot + below - 7]], "ink", what === "mean" ? { strokeDasharray: "4 3" } : {});
        const beyond = from + all.slowest * scale + 5;
        const [begin, textAnchor] = at < from + 100 ? [beyond, "start"] : [at, "end"];
        canvas.text(begin, foot + below, `${what} ${commas(pairs)}`, { fontSize: 12, textAnchor });
      });


      const tokens = `${n * own} tokens ${name}, ${n} devices`;
      if (!done) return `${tokens}, before round 1: each device begins with its own keys. The numbers show the round of each block.`;
      const times = (a, b) => (a / b).toFixed(3);
      const last = pairs[latest];
      const each = rounds.map((d) => sum(pairs.slice(0, done).map((round) => round[d])));
      const [least, most] = [Math.min(...each), Math.max(...each)];
      const has = least === most ? "each device computes" : `a device computes ${commas(least)} to`;
      const span = done === n ? `In all ${n} rounds` : `In the first ${done === 1 ? "round" : `${done} rounds`}`;
      return (
        `${tokens}. The outlines mark round ${done} of ${n}: ${last.join(", ")} pairs on devices 0 to ${n - 1}. ` +
        `${span}, ${has} ${commas(most)} pairs: ` +
        `most / mean ${times(most, all.mean)}, slowest / mean ${times(all.slowest, all.mean)}.` +
        (all.slowest > all.mean ? " Grey marks waiting." : "")
      );
    },
  });
})();
