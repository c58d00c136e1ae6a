// Lesson 10: compare the bytes of model state on each device with a chip's memory. `numbers` contains the bytes per parameter
// of each part of the state, from the lesson's figure, and the memory of each chip in GB, from lesson 07's data sheets.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const STAGES = ["all copied", "stage 1", "stage 2", "stage 3"];
  const SHARDED_FROM = { optimizer: 1, gradients: 2, weights: 3 }; // the first stage at which each part is sharded
  const MODELS = { "1e9": 1e9, "7.5e9": 7.5e9, "70e9": 70e9 };
  const MAX_BYTES = 16; // bytes per parameter if everything is replicated
  const short = (x) => (x >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3))));

  const share = (part, stage, n) => (stage >= SHARDED_FROM[part] ? 1 / n : 1);
  const bytes = (parts, stage, n) =>
    Object.entries(parts).reduce((sum, [part, each]) => sum + each * share(part, stage, n), 0);

  // Return the unused memory in bytes per parameter. Treat rounding errors as 0.
  const left = (parts, stage, n, room) => {
    const rest = room - bytes(parts, stage, n);
    return Math.abs(rest) < 1e-9 ? 0 : rest;
  };

  // Return the smallest number of devices that leaves some memory unused, or null if there's none: replicated parts don't
  // shrink.
  const fewest = (parts, stage, room) => {
    const whole = bytes(parts, stage, Infinity);
    if (left(parts, stage, 1, room) > 0) return 1;
    if (room - whole < 1e-9 || stage === 0) return null;
    let n = Math.max(1, Math.floor((MAX_BYTES - whole) / (room - whole)) - 1);
    while (left(parts, stage, n, room) <= 0) n++;
    return n;
  };

  interactiveFigures.define("fsdp_memory", {
    title: "Try it: other numbers of devices, models and chips",
    controls: ({ chips }) => ({
      n: range("devices", 1, 128, 64),
      model: choice("parameters", Object.keys(MODELS), "7.5e9"),
      chip: choice("memory", Object.entries(chips).map(([name, gb]) => `${name}, ${gb} GB`)),
    }),
    asks: { stage_1: ({ n }) => n === 8 },
    draw({ n, model, chip }, canvas, { parts, chips }) {
      const name = chip.slice(0, chip.lastIndexOf(","));
      const N = MODELS[model];
      const room = (chips[name] * 1e9) / N; // bytes for each parameter
      const wide = canvas.width / MAX_BYTES;
      const names = Object.keys(parts);
      const dashes = `${chips[name]} GB: ${short(room)} bytes${room > MAX_BYTES ? ", beyond the frame" : ""}`;
      const keys = names.map((part, k) => [COLORS[k], part]);
      const top = canvas.legend(0, [...keys, ["dashes", dashes]]) + 10;
      const row = 50;
      canvas.height(top + 4 * row + 36);
      const gigabytes = [];
      STAGES.forEach((stage, s) => {
        const y = top + s * row;
        const held = bytes(parts, s, n);
        const rest = left(parts, s, n, room);
        gigabytes.push(short((held * N) / 1e9));
        const verdict = rest > 0 ? "fits" : rest === 0 ? "full" : "doesn't fit";
        canvas.text(0, y + 7, `${stage}: ${short(held)} bytes`, { textAnchor: "start" });
        const strong = { textAnchor: "end", fontWeight: rest > 0 ? 600 : 400 };
        canvas.text(canvas.width, y + 7, `${gigabytes[s]} GB, ${verdict}`, strong);
        canvas.rect(0, y + 18, canvas.width, 22, "ground");
        let x = 0;
        names.forEach((part, k) => {
          const long = parts[part] * share(part, s, n) * wide;
          canvas.rect(x, y + 18, long, 22, COLORS[k]);
          x += long;
        });
        if (room > MAX_BYTES) return;
        const at = Math.min(room * wide, canvas.width - 1);
        canvas.line([[at, y + 16], [at, y + 43]], "ink", { strokeDasharray: "4 3", strokeWidth: 2 });
      });
      const bottom = top + 4 * row;
      for (const tick of [0, 4, 8, 12, 16]) {
        const anchor = tick === 0 ? "start" : tick === MAX_BYTES ? "end" : "middle";
        canvas.text(tick * wide, bottom + 4, tick, { fontSize: 12, textAnchor: anchor });
      }
      const axis = `${canvas.width > 420 ? "bytes that each device stores" : "bytes on each device"} per parameter`;
      canvas.text(canvas.width / 2, bottom + 22, axis, { fontSize: 12 });

      const whose = n === 1 ? "The one device" : `Each of ${n} devices`;
      const held = STAGES.map((stage, s) => `${gigabytes[s]} ${s ? `at ${stage}` : "with all copied"}`);
      const from = STAGES.map((stage, s) => {
        const first = fewest(parts, s, room);
        return `${stage} ${first === null ? "never" : first === 1 ? "always" : `on ${first} or more devices`}`;
      });
      return (
        `${whose} stores, in GB: ${held.join(", ")}. The training state fits in the ${chips[name]} GB of ` +
        `${name.startsWith("H") ? "an" : "a"} ${name}, with memory to spare: ${from.join(", ")}. ` +
        "Activations aren't included."
      );
    },
  });
})();
