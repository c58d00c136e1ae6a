// Lesson 00: draw a tangent to tanh or to one of its derivatives. Its slope is the value of the next derivative. The formulas
// were derived by hand, as in the cell `derivatives`, and agree with jax.grad.
(() => {
  const { range, choice, COLORS } = interactiveFigures;
  const CURVES = ["tanh", "first derivative", "second", "third"];
  const values = (x) => {
    const t = Math.tanh(x);
    return [t, 1 - t ** 2, -2 * t * (1 - t ** 2), (1 - t ** 2) * (6 * t ** 2 - 2)];
  };
  const four = (value) => (Math.round(value * 1e4) / 1e4 + 0).toFixed(4);

  interactiveFigures.define("derivative_tangent", {
    title: "Try it: the slope is the next derivative",
    asks: { third_at_zero: ({ curve }) => curve === "second" },
    controls: () => ({
      at: range("x", -3, 3, 0.5, { step: 0.05, shown: (value) => value.toFixed(2) }),
      curve: choice("tangent to", CURVES.slice(0, 3)),
    }),
    draw({ at, curve }, canvas) {
      const of = CURVES.indexOf(curve);
      const now = values(at).slice(0, of + 2);
      const slope = now[of + 1];
      const [left, top, high] = [34, 6, 300];
      const x = (value) => left + 8 + ((value + 3) / 6) * (canvas.width - left - 16);
      const y = (value) => top + ((1.6 - value) / 3.85) * high;
      canvas.height(high + 84);

      for (const value of [-2, -1, 0, 1]) {
        canvas.line([[left, y(value)], [canvas.width, y(value)]], value ? "faint" : "ink", { strokeWidth: 1 });
        canvas.text(left - 8, y(value), value, { fontSize: 12, textAnchor: "end" });
      }
      for (let value = -3; value <= 3; value++) canvas.text(x(value), top + high + 10, value, { fontSize: 12 });
      const points = [...Array(121).keys()].map((i) => -3 + i / 20); // as in the lesson
      now.forEach((_, i) => {
        const strong = i === of || i === of + 1;
        const line = points.map((point) => [x(point), y(values(point)[i])]);
        canvas.line(line, COLORS[i], { strokeWidth: strong ? 3 : 2, strokeOpacity: strong ? 1 : 0.3 });
      });

      // Move by 1 to the right along the tangent (near the right end, to the left). The rise is the next curve's height.
      const [run, back] = at <= 2 ? [1, -0.6] : [-1, 0.6];
      const end = now[of] + run * slope;
      const stop = Math.max(-3, Math.min(3, at + back));
      canvas.line([[x(at), y(now[of])], [x(at + run), y(now[of])]], "ink", { strokeWidth: 1, strokeDasharray: "4 3" });
      canvas.line([[x(stop), y(now[of] + (stop - at) * slope)], [x(at + run), y(end)]], "ink", { strokeWidth: 2.5 });
      canvas.line([[x(at + run), y(now[of])], [x(at + run), y(end)]], COLORS[of + 1], { strokeWidth: 5 });
      canvas.line([[x(at), y(0)], [x(at), y(slope)]], COLORS[of + 1], { strokeWidth: 5 });
      now.forEach((value, i) => {
        const strong = i === of || i === of + 1;
        canvas.circle(x(at), y(value), strong ? 6 : 3.5, COLORS[i], strong ? { stroke: "ink", strokeWidth: 1.5 } : {});
      });

      const column = canvas.width / 4;
      const narrow = canvas.width < 500;
      now.forEach((value, i) => {
        const bold = { fontSize: 12, textAnchor: "start", fontWeight: i === of || i === of + 1 ? 700 : 400 };
        canvas.rect(i * column, high + 36, 8, 34, COLORS[i]);
        canvas.text(i * column + 13, high + 44, narrow ? CURVES[i].split(" ")[0] : CURVES[i], bold);
        canvas.text(i * column + 13, high + 62, four(value), { ...bold, fontSize: narrow ? 12 : 13 });
      });

      const way = slope < 0 ? "falls" : "rises";
      const next = ["first", "second", "third"][of];
      const what = ["tanh", "the first derivative", "the second derivative"][of];
      return (
        `At x = ${at.toFixed(2)}, the tangent to ${what} ${way} by ` +
        `${four(Math.abs(slope))} per unit of x, so the ${next} derivative there is ${four(slope)}. ` +
        `${now.map((value, i) => `${CURVES[i].split(" ")[0]} ${four(value)}`).join(", ")}.`
      );
    },
  });
})();
