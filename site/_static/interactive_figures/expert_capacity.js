// Lesson 14: show that every seat is sent, even if it's empty. The tokens per expert are the lesson's counts, or more even.
(() => {
  const { range, COLORS } = interactiveFigures;
  const [SEATED, DROPPED, EMPTY] = [0, 1, 2]; // blue, orange, green
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const commas = (number) => Math.round(number).toLocaleString("en-US");

  // Interpolate between an even load, at 0 %, and the lesson's counts, at 100 %, in whole numbers with the same sum.
  const between = (counts, percent) => {
    const even = sum(counts) / counts.length;
    const exact = counts.map((count) => even + ((count - even) * percent) / 100);
    const whole = exact.map(Math.floor);
    const order = counts.map((_, e) => e).sort((a, b) => exact[b] - whole[b] - (exact[a] - whole[a]) || a - b);
    order.slice(0, sum(counts) - sum(whole)).forEach((e) => whole[e]++);
    return whole;
  };

  interactiveFigures.define("expert_capacity", {
    title: "Try it: with too few seats, tokens are dropped; with too many, empty seats are sent",
    controls: () => ({
      capacity: range("seats per expert", 1, 64, 8),
      uneven: range("unevenness", 0, 100, 100, { step: 5, shown: (percent) => `${percent} %` }),
    }),
    asks: {
      without_seat: ({ capacity, uneven }) => capacity === 10 && uneven === 100,
      padding: ({ capacity }) => capacity === 64,
    },
    // numbers: {wanted: tokens by expert, bytes: that a device sends per seat of an expert}
    draw({ capacity, uneven }, canvas, { wanted, bytes }) {
      const counts = between(wanted, uneven);
      const tokens = sum(counts);
      const seats = counts.length * capacity;
      const seated = sum(counts.map((count) => Math.min(count, capacity)));
      const wide = canvas.width >= 560;
      const left = wide ? 62 : 18;
      const columns = wide ? [["seated", 110], ["dropped", 50], ["empty", 0]] : [];
      const row = 24;
      const top = 24;
      const cell = (canvas.width - left - (wide ? 164 : 2)) / tokens; // leaves space for as many seats as tokens
      const foot = top + counts.length * row;
      canvas.height(foot + 132);

      const end = { fontSize: 12, textAnchor: "end" };
      const begin = { fontSize: 12, textAnchor: "start" };
      // Draw `count` places in a row: seated and dropped tokens filled, dropped ones struck out, empty seats hollow.
      const places = (x, y, count, kind, size, high) => {
        if (!count) return;
        const gap = size >= 5 ? 1 : 0;
        const green = { stroke: COLORS[EMPTY], strokeWidth: 1.5 };
        if (kind === EMPTY) canvas.rect(x + 0.75, y + 0.75, count * size - 1.5 - gap, high - 1.5, "none", green);
        else if (!gap) canvas.rect(x, y, count * size, high, COLORS[kind]);
        for (let i = 0; i < (gap ? count : 0); i++) {
          const from = x + i * size;
          if (kind === EMPTY) {
            if (i) canvas.line([[from - 0.5, y], [from - 0.5, y + high]], COLORS[EMPTY], { strokeWidth: 1 });
            continue;
          }
          canvas.rect(from, y, size - gap, high, COLORS[kind]);
          const struck = [[from + 1, y + high - 2], [from + size - 2, y + 2]];
          if (kind === DROPPED) canvas.line(struck, "#000", { strokeWidth: 1 });
        }
      };

      let x = left; // the legend
      [["seated", SEATED], ["dropped", DROPPED], ["empty", EMPTY]].forEach(([name, kind]) => {
        places(x, 3, 1, kind, 12, 12);
        x += 34 + canvas.text(x + 16, 9, name, begin).getComputedTextLength();
      });
      columns.forEach(([name, right]) => canvas.text(canvas.width - right, 9, name, end));
      counts.forEach((count, e) => {
        const y = top + e * row;
        const taken = Math.min(count, capacity);
        const parts = { seated: taken, dropped: count - taken, empty: capacity - taken };
        canvas.text(left - 8, y + row / 2 - 2, wide ? `expert ${e}` : e, end);
        places(left, y, taken, SEATED, cell, row - 4);
        places(left + taken * cell, y, parts.dropped, DROPPED, cell, row - 4);
        places(left + taken * cell, y, parts.empty, EMPTY, cell, row - 4);
        columns.forEach(([name, right]) => canvas.text(canvas.width - right, y + row / 2 - 2, parts[name], end));
        const beyond = left + count * cell + 6;
        if (!wide && parts.dropped) canvas.text(beyond, y + row / 2 - 2, parts.dropped, begin);
      });
      const line = left + capacity * cell;
      canvas.line([[line, top - 4], [line, foot + 4]], "ink", { strokeWidth: 2 });
      canvas.text(line, foot + 12, `capacity ${capacity}`, capacity > tokens / 2 ? end : begin);

      // At the bottom, draw the total numbers of tokens and of seats sent, on one scale.
      const unit = canvas.width / (counts.length * tokens);
      const bar = (y, words, first, kind, rest) => {
        canvas.text(0, y, words, begin);
        places(0, y + 11, first, SEATED, unit, 18);
        places(first * unit, y + 11, rest, kind, unit, 18);
      };
      const dropped = tokens - seated;
      bar(foot + 42, `${tokens} tokens: ${seated} seated, ${dropped} dropped`, seated, DROPPED, dropped);
      const empty = seats - seated;
      bar(foot + 92, `${seats} seats sent: ${seated} taken, ${empty} empty`, seated, EMPTY, empty);

      const sent = bytes * capacity;
      return (
        `${capacity === 1 ? "1 seat" : `${capacity} seats`} per expert (factor ${seats / tokens}): ${dropped} of ${tokens} tokens are dropped, ` +
        `and ${empty} of ${seats} seats are empty. ` +
        `Each device sends ${commas(sent)} bytes per training step: ` +
        `${commas(sent / seated)} for each seated token, or ${commas(bytes / counts.length)} if all seats were taken.`
      );
    },
  });
})();
