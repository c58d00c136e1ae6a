// Lesson 19: show a plan for the lesson's training run: the memory on each chip, and the times for computing and sending. The
// estimates are those of the lesson's `price`, in JavaScript. `numbers` are the chip's rates and its memory in GB.
(() => {
  const { choice, range, COLORS, LETTERS } = interactiveFigures;
  const TASK = { chips: 64, layers: 40, width: 4096, hidden: 16384, heads: 32, words: 32768, batch: 256, length: 2048 };
  const LAYER = 4 * TASK.width ** 2 + 2 * TASK.width * TASK.hidden; // parameters per layer
  const ALL = TASK.layers * LAYER + TASK.words * TASK.width;
  const PARTS = ["state", "gradients", "kept", "current layer"];
  const CLOCKS = ["computing", "sending"];
  const part = (n) => (n - 1) / n;
  const three = (x) => (x >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3))));

  const priced = ({ data, fsdp, model, micro, remat }, rates) => {
    const { layers, width, heads, words, batch, length } = TASK;
    const tokens = (batch * length) / (data * fsdp);
    const own = ALL / (fsdp * model);
    const x = 2 * tokens * width;
    const scores = (4 * tokens * length * heads) / model;
    const logits = (4 * tokens * words) / model;
    const held = {
      state: 12 * own,
      gradients: 4 * own * (micro > 1 ? 2 : 1),
      kept: (layers * (remat ? x : (4 + 8 / model) * x + scores)) / micro,
      "current layer": (scores + logits) / micro + (4 * LAYER) / model,
    };
    const sent =
      (3 * micro * part(fsdp) * 2 * ALL) / model + // FSDP
      2 * part(data) * 4 * own + // DDP
      (remat ? 5 : 4) * layers * 2 * part(model) * x; // Megatron
    const flops = ((remat ? 8 : 6) * ALL * tokens) / model;
    return { held, clocks: { computing: flops / rates.flops, sending: sent / rates.ring } };
  };

  // Return the reason why these axis sizes aren't possible, or "".
  const refused = ({ data, fsdp, model, micro }) => {
    if (data < 1) return `fsdp ${fsdp} and model ${model} would need ${three(fsdp * model)} chips, but there are only 64.`;
    const rows = TASK.batch / (data * fsdp);
    if (micro <= rows) return "";
    return `With data ${data} and fsdp ${fsdp}, each chip has ${rows} of the 256 sequences, too few for ${micro} microbatches.`;
  };

  // Draw an arrow if a bar ends outside the frame.
  const beyond = (canvas, y, high) => {
    canvas.rect(canvas.width - 16, y, 16, high, "ground");
    canvas.arrow([canvas.width - 14, y + high / 2], [canvas.width - 2, y + high / 2], "ink", { strokeWidth: 2 });
  };

  interactiveFigures.define("training_plan", {
    title: "Try it: a plan for 64 TPU v6e",
    controls: () => {
      const shown = (k) => String(2 ** k);
      const size = (label, most, value) => range(label, 0, most, value, { shown });
      const how = choice("layers", ["remat", "kept"]);
      return { f: size("fsdp", 6, 0), m: size("model", 5, 0), r: size("microbatches", 4, 0), how };
    },
    asks: {
      state: ({ f, m }) => f + m === 6,
      rounds: ({ f, m, r }) => f === 6 && m === 0 && r === 2,
    },
    draw({ f, m, r, how }, canvas, rates) {
      const plan = { data: 2 ** (6 - f - m), fsdp: 2 ** f, model: 2 ** m, micro: 2 ** r, remat: how === "remat" };
      const why = refused(plan);
      const { held, clocks } = why ? {} : priced(plan, rates);
      const gb = PARTS.map((name) => (why ? 0 : held[name] / 1e9));
      const total = gb.reduce((sum, one) => sum + one, 0);
      const start = { textAnchor: "start", fontSize: 12 };
      const dashes = { strokeDasharray: "4 3", strokeWidth: 2 };
      const axis = (ticks, left, wide, y) => {
        for (const tick of ticks) canvas.text(left + tick * wide, y, tick, tick ? { fontSize: 12 } : start);
      };
      const [given, asked] = plan.data < 1 ? ["", plan.fsdp * plan.model] : [`data ${plan.data} · `, TASK.chips];
      const mesh = `${given}fsdp ${plan.fsdp} · model ${plan.model} = ${three(asked)} chips`;
      canvas.text(0, 9, mesh, { ...start, fontSize: 13, fontWeight: 600 });
      const names = PARTS.map((name, k) => [COLORS[k], name]);
      let y = canvas.legend(28, [...names, ["dashes", `a chip's memory, ${rates.gb}`]]) + 6;

      const most = 64; // GB
      const wide = canvas.width / most;
      canvas.rect(0, y, canvas.width, 26, "ground");
      let x = 0;
      gb.forEach((one, k) => {
        const seen = Math.min(one * wide, canvas.width - x);
        canvas.rect(Math.min(x, canvas.width), y, seen, 26, COLORS[k]);
        x += one * wide;
        const middle = x - seen / 2;
        if (seen < 40 || x > canvas.width || Math.abs(middle - rates.gb * wide) < 18) return;
        canvas.text(middle, y + 14, three(one), { fontSize: 12, fill: LETTERS[k] });
      });
      if (total > most) beyond(canvas, y, 26);
      if (why) canvas.text(canvas.width / 4, y + 14, "not possible");
      canvas.line([[rates.gb * wide, y - 4], [rates.gb * wide, y + 30]], "ink", dashes);
      axis([0, 20, 40, 60], 0, wide, y + 40);
      canvas.text(0, y + 58, `GB on each chip (estimate)${why ? "" : `: ${three(total)}`}`, start);

      y += 84;
      const seconds = CLOCKS.map((name) => (why ? 0 : clocks[name]));
      const slowest = seconds.indexOf(Math.max(...seconds));
      const left = 76;
      const second = (canvas.width - left) / 1.4;
      CLOCKS.forEach((name, k) => {
        const [top, long] = [y + k * 26, Math.min(seconds[k] * second, canvas.width - left)];
        canvas.text(0, top + 10, name, start);
        canvas.rect(left, top, canvas.width - left, 20, "ground");
        canvas.rect(left, top, long, 20, k === slowest ? COLORS[5] : COLORS[7]);
        if (seconds[k] * second > canvas.width - left) beyond(canvas, top, 20);
        if (why) return;
        const words = `${three(seconds[k])} s${k === slowest ? ", slowest" : ""}`;
        const inside = long > canvas.width - left - 90;
        const at = inside ? left + 8 : left + long + 6;
        canvas.text(at, top + 10, words, { ...start, fill: inside ? "#000" : "ink" });
      });
      const bottom = y + 2 * 26;
      axis([0, 0.5, 1], left, second, bottom + 6);
      canvas.text(0, bottom + 24, "seconds per step (estimate)", start);
      canvas.height(bottom + 36);
      if (why) return `This plan isn't possible. ${why}`;

      const each = PARTS.map((name, k) => `${name} ${three(gb[k])}`).join(", ");
      const other = CLOCKS[1 - slowest];
      const fits = total > rates.gb ? "more" : "less";
      return (
        `data ${plan.data} fsdp ${plan.fsdp} model ${plan.model} micro ${plan.micro} ${how}: ${three(total)} GB ` +
        `(${each}), ${fits} than a chip's ${rates.gb}. The slower part is ${CLOCKS[slowest]}, ` +
        `which takes ${three(seconds[slowest])} s (${other}: ${three(clocks[other])} s).`
      );
    },
  });
})();
