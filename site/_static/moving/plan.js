// Lesson 19: a plan for level 3, what a chip holds and the three clocks. The prices are the page's own functions
// memory, sent, flops and clocks, in JavaScript, for plans in bfloat16 without copies. `numbers` are the rates of a
// chip, and its GB as in the figure above.
(() => {
  const { range, COLORS, LETTERS } = moving;
  const TASK = { chips: 128, layers: 96, width: 8192, hidden: 32768, heads: 64, words: 32768, batch: 32, length: 6144 };
  const LAYERS = TASK.layers * (4 * TASK.width ** 2 + 2 * TASK.width * TASK.hidden); // parameters of all layers
  const WORDS = TASK.words * TASK.width; // of the table of words
  const PARTS = ["state", "gradients", "kept", "at work"];
  const CLOCKS = ["compute", "network", "memory"];
  const part = (n) => (n - 1) / n;
  const three = (x) => (x >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3))));

  const priced = ({ fsdp, model, pipe, micro }, rates) => {
    const { chips, layers, width, hidden, heads, words, batch, length } = TASK;
    const [turns, uses] = pipe === 1 ? [micro, micro] : [micro + pipe - 1, 1];
    const remat = pipe > 1 ? "stage" : "layer";
    const all = (2 * batch * length * width) / fsdp; // bytes of the activations of all rows of a chip
    const x = all / micro;
    const deep = layers / pipe;

    const own = (LAYERS / pipe + WORDS) / (fsdp * model);
    const scores = (4 * batch * heads * length ** 2) / (fsdp * micro * model);
    const logits = (4 * batch * length * words) / (fsdp * micro * model * pipe);
    const held = {
      state: 10 * own,
      gradients: 2 * own * (uses > 1 ? 2 : 1),
      kept: (remat === "stage" ? 2 * turns + 2 * micro + deep : deep) * x,
      "at work": (4 * LAYERS) / (layers * model) + scores + logits,
    };

    const [gathers, passes] = remat === "stage" ? [3, 7] : [2, 5];
    const sums = (passes * layers * turns) / (pipe * micro);
    const [own_layers, table] = [LAYERS / (model * pipe), WORDS / model];
    const way = 2 * part(fsdp);
    const sent =
      way * (gathers * turns * own_layers + uses * table) + part(pipe) * all + // all-gather
      way * (turns * own_layers + uses * table) + part(pipe) * all + // reduce-scatter
      2 * part(model) * all * (sums + 2) + (4 * part(pipe) * table) / fsdp + // all-reduce
      (pipe > 1 ? (2 * all * turns) / micro : 0); // collective-permute

    const again = remat === "stage" ? 2 : 1;
    const mixing = 4 * length * width * layers;
    const token = (6 + 2 * again) * LAYERS + (3 + again) * mixing - 2 * layers * width * hidden;
    const flops = ((batch * length) / chips) * ((token * turns) / micro + 8 * WORDS);
    const clocks = { compute: flops / rates.flops, network: sent / rates.ring, memory: (2 * held.state) / rates.hbm };
    return { held, clocks, turns };
  };

  // Why these sizes are no plan, or nothing.
  const refused = ({ fsdp, pipe, model, micro }) => {
    if (model < 1) return `fsdp ${fsdp} and pipe ${pipe} ask for ${three(fsdp * pipe)} chips, and there are 128.`;
    if (model > TASK.heads) return `All 128 chips are left for model, and there are ${TASK.heads} heads to cut.`;
    const rows = TASK.batch / fsdp;
    if (micro <= rows) return "";
    return `With fsdp ${fsdp} a chip has ${rows} of the 32 sequences, too few for ${micro} microbatches.`;
  };

  // A bar's end may lie beyond the frame: then it is an arrow.
  const beyond = (canvas, y, high) => {
    canvas.rect(canvas.width - 16, y, 16, high, "ground");
    canvas.arrow([canvas.width - 14, y + high / 2], [canvas.width - 2, y + high / 2], "ink", { strokeWidth: 2 });
  };

  moving.picture("plan", {
    title: "Try it: a plan for level 3",
    controls: () => {
      const shown = (k) => String(2 ** k);
      const size = (label, value) => range(label, 0, 5, value, { shown });
      return { f: size("fsdp", 2), p: size("pipe", 2), m: size("microbatches", 3) };
    },
    draw({ f, p, m }, canvas, rates) {
      const plan = { fsdp: 2 ** f, pipe: 2 ** p, model: 2 ** (7 - f - p), micro: 2 ** m };
      const why = refused(plan);
      const { held, clocks, turns } = why ? {} : priced(plan, rates);
      const gb = PARTS.map((name) => (why ? 0 : held[name] / 1e9));
      const total = gb.reduce((sum, one) => sum + one, 0);
      const start = { textAnchor: "start", fontSize: 12 };
      const dashes = { strokeDasharray: "4 3", strokeWidth: 2 };
      const axis = (ticks, left, wide, y) => {
        for (const tick of ticks) canvas.text(left + tick * wide, y, tick, tick ? { fontSize: 12 } : start);
      };
      const [given, asked] = plan.model < 1 ? ["", plan.fsdp * plan.pipe] : [` · model ${plan.model}`, TASK.chips];
      const mesh = `fsdp ${plan.fsdp} · pipe ${plan.pipe}${given} = ${three(asked)} chips`;
      canvas.text(0, 9, mesh, { ...start, fontSize: 13, fontWeight: 600 });
      const names = PARTS.map((name, k) => [COLORS[k], name]);
      let y = canvas.key(28, [...names, ["dashes", `a chip's memory, ${rates.gb}`]]) + 6;

      const most = 34; // GB
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
      if (why) canvas.text(canvas.width / 4, y + 14, "no plan");
      canvas.line([[rates.gb * wide, y - 4], [rates.gb * wide, y + 30]], "ink", dashes);
      axis([0, 10, 20, 30], 0, wide, y + 40);
      canvas.text(0, y + 58, `GB that a chip holds, predicted${why ? "" : `: ${three(total)}`}`, start);

      y += 84;
      const seconds = CLOCKS.map((name) => (why ? 0 : clocks[name]));
      const slowest = seconds.indexOf(Math.max(...seconds));
      const left = 62;
      const second = (canvas.width - left) / 24;
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
      const bottom = y + 3 * 26;
      axis([0, 10, 20], left, second, bottom + 6);
      canvas.text(0, bottom + 24, "seconds of each clock alone, an estimate", start);
      canvas.height(bottom + 36);
      if (why) return `${why} That is no plan.`;

      const each = PARTS.map((name, k) => `${name} ${three(gb[k])}`).join(", ");
      const others = CLOCKS.filter((_, k) => k !== slowest).map((name) => `${name} ${three(clocks[name])}`).join(", ");
      const batches = `${plan.micro} microbatch${plan.micro > 1 ? "es" : ""}`;
      const ticks = plan.pipe > 1 ? ` The pipe takes ${turns} ticks for ${batches}.` : "";
      const near = total * 1.2 > rates.gb && total * 0.8 < rates.gb;
      return (
        `fsdp ${plan.fsdp} model ${plan.model} pipe ${plan.pipe} micro ${plan.micro} bfloat16: ${three(total)} GB ` +
        `(${each}), ${total > rates.gb ? "more" : "less"} than a chip's ${rates.gb}; slowest is ${CLOCKS[slowest]}, ` +
        `${three(seconds[slowest])} s (${others}).${ticks} Estimates: where a plan was compiled, ` +
        `the memory was right within a fifth${near ? "; so only the compiler tells whether this one fits" : ""}.`
      );
    },
  });
})();
