// Draw interactive figures as SVG, and redraw them whenever the reader changes a control. Each file in
// interactive_figures/ defines one kind of figure. Without JavaScript, the page still shows the lesson's static figures.
//
// interactiveFigures.define(kind, { title, controls, draw, asks })
//   controls(numbers): returns the controls by name, each made by range, choice, text or steps (below).
//   draw(values, canvas, numbers, unanswered): draws the figure, and returns a sentence that describes it. The sentence is
//     shown below the figure, and screen readers announce it. `numbers` are the lesson's data, from
//     tools/site/interactive_figures.py.
//   asks: optional. Maps the name of a prediction in the lesson to a function (values, numbers) that returns true if these
//     values would reveal its answer. The figure then stays hidden until the reader has seen the answer. If the function
//     returns "partly", the figure is drawn at once, and `draw` leaves out the answers to the questions in `unanswered`.
window.interactiveFigures = (() => {
  const kinds = {};
  const make = (name, properties = {}, ...inside) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...inside);
    return element;
  };

  // Okabe and Ito's colours, as in utils/show/notebook_figure.py, and the colour of letters on each of them.
  const COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
  const LETTERS = ["#fff", "#000", "#000", "#000", "#000", "#000", "#000", "#000"];

  // Draws shapes, with coordinates in pixels. The colours `ink`, `faint` and `ground` follow the page's light or dark theme;
  // any CSS colour works, too.
  class Canvas {
    constructor(svg, width) {
      Object.assign(this, { svg, width });
    }
    height(pixels) {
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${pixels}`);
      this.svg.setAttribute("height", pixels);
    }
    add(name, attributes, text) {
      const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) {
        const named = { ink: "currentColor", faint: "var(--course-line)", ground: "var(--course-tint)" }[value];
        shape.setAttribute(key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), named ?? value);
      }
      if (text !== undefined) shape.textContent = text;
      this.svg.append(shape);
      return shape;
    }
    rect(x, y, width, height, fill, more = {}) {
      return this.add("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), fill, ...more });
    }
    circle(x, y, radius, fill, more = {}) {
      return this.add("circle", { cx: x, cy: y, r: radius, fill, ...more });
    }
    line(points, stroke = "ink", more = {}) {
      return this.add("polyline", { points: points.map((p) => p.join(",")).join(" "), fill: "none", stroke, strokeWidth: 1.5, ...more });
    }
    text(x, y, words, more = {}) {
      return this.add("text", { x, y, fill: "ink", fontSize: 13, textAnchor: "middle", dominantBaseline: "central", ...more }, words);
    }
    // Draw a legend, in as many rows as the width requires. An entry is [colour or "dashes", label, attributes]; the
    // attributes of the colour box are optional. Return the y coordinate of the legend's bottom edge.
    legend(y, entries) {
      let x = 0;
      for (const [fill, words, more] of entries) {
        const label = this.text(x + 18, y + 8, words, { textAnchor: "start", fontSize: 12 });
        const wide = 18 + label.getComputedTextLength();
        if (x > 0 && x + wide > this.width) {
          [x, y] = [0, y + 19];
          label.setAttribute("x", 18);
          label.setAttribute("y", y + 8);
        }
        if (fill === "dashes") this.line([[x + 6, y], [x + 6, y + 15]], "ink", { strokeDasharray: "4 3", strokeWidth: 2 });
        else this.rect(x, y + 2, 12, 12, fill, more);
        x += wide + 16;
      }
      return y + 19;
    }
    // Draw a line from one point to another, with an arrowhead at the end.
    arrow([x0, y0], [x1, y1], stroke = "ink", more = {}) {
      const length = Math.hypot(x1 - x0, y1 - y0) || 1;
      const [dx, dy] = [((x1 - x0) / length) * 7, ((y1 - y0) / length) * 7];
      this.line([[x0, y0], [x1, y1]], stroke, more);
      this.line([[x1 - dx - dy * 0.6, y1 - dy + dx * 0.6], [x1, y1], [x1 - dx + dy * 0.6, y1 - dy - dx * 0.6]], stroke, more);
    }
  }

  // A slider. `max` is a number, or a function that takes the values of all controls.
  const range = (label, min, max, value, { step = 1, shown = String } = {}) => ({ is: "range", label, min, max, value, step, shown });
  const choice = (label, words, value = words[0]) => ({ is: "choice", label, words, value });
  const text = (label, value, { size = 12 } = {}) => ({ is: "text", label, value, size });
  // A slider with the buttons Back and Next and, unless the reader prefers reduced motion, Play. `last(values)` returns the
  // number of the last step.
  const steps = (label, last, value = 0) => ({ is: "steps", label, last, value, min: 0, step: 1, shown: String });

  const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Create a control's elements. Return them with a function `fit`, which updates a slider's range and its text.
  const control = (spec, values, name, changed) => {
    const field = make("label", {}, `${spec.label} `);
    values[name] = spec.value;
    const set = (value) => {
      values[name] = value;
      changed();
    };
    if (spec.is === "choice") {
      const box = make("select", {}, ...spec.words.map((word) => new Option(word, word, word === spec.value, word === spec.value)));
      box.addEventListener("change", () => set(box.value));
      field.append(box);
      return { fields: [field], fit: () => {} };
    }
    if (spec.is === "text") {
      const box = make("input", { type: "text", value: spec.value, size: spec.size, autocomplete: "off", spellcheck: false });
      box.addEventListener("input", () => set(box.value));
      field.append(box);
      return { fields: [field], fit: () => {} };
    }
    const box = make("input", { type: "range", min: spec.min, step: spec.step });
    const output = make("span", { className: "value" });
    output.setAttribute("aria-hidden", "true"); // the slider's aria-valuetext has the same text
    const end = spec.is === "steps" ? spec.last : spec.max;
    const last = () => (typeof end === "function" ? end(values) : end);
    let before = 0;
    const fit = () => {
      box.max = last(); // the browser then limits box.value
      const wasAtEnd = spec.is === "steps" && before && values[name] === before; // then stay at the end
      values[name] = wasAtEnd ? last() : Math.min(values[name], last());
      before = last();
      box.value = values[name];
      output.textContent = spec.is === "steps" ? `${values[name]} of ${last()}` : spec.shown(values[name]);
      box.setAttribute("aria-valuetext", output.textContent);
    };
    box.addEventListener("input", () => set(Number(box.value)));
    field.append(box, " ", output);
    if (spec.is !== "steps") return { fields: [field], fit };

    const button = (words, act) => {
      const made = make("button", { type: "button", className: "button quiet", textContent: words });
      made.addEventListener("click", act);
      return made;
    };
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    };
    const go = (by) => set(Math.max(0, Math.min(last(), values[name] + by)));
    const play = button("Play", () => {
      if (timer) return stop();
      if (values[name] >= last()) set(0);
      play.textContent = "Pause";
      timer = setInterval(() => (values[name] < last() ? go(1) : stop()), 900);
    });
    const step = (words, by) => button(words, () => (stop(), go(by)));
    box.addEventListener("input", stop);
    const buttons = [step("Back", -1), step("Next", 1), ...(prefersReducedMotion() ? [] : [play])];
    return { fields: [field, make("span", { className: "steps" }, ...buttons)], fit };
  };

  // Ask the reader to answer a question first, with a link to it (hidden_answers.js gives questions their ids).
  const askFirst = (notice, what, index) => {
    const link = make("a", { href: `#question-${index}`, textContent: "Go to the question" });
    notice.replaceChildren(`The page asks you about ${what}, so guess first, and then it\u2019s drawn. `, link);
  };

  const initialize = (figure) => {
    const kind = kinds[figure.dataset.kind];
    if (!kind) return;
    const numbers = JSON.parse(figure.querySelector("script")?.textContent ?? "null");
    const questions = JSON.parse(figure.dataset.questions); // null on a page without questions, where nothing is hidden
    const asks = questions ? Object.entries(kind.asks ?? {}) : [];
    const unknown = asks.find(([name]) => !(name in questions));
    if (unknown) throw new Error(`this page has no question named ${unknown[0]}`);
    const values = {};
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const caption = make("p", { className: "caption" });
    const announcement = make("p", { className: "announcement" }); // the caption for screen readers, updated after a pause
    announcement.setAttribute("role", "status");
    const notice = make("p", { className: "notice", hidden: true });
    [svg, caption].forEach((element) => element.setAttribute("aria-hidden", "true"));
    let timer = null;
    const draw = (byReader = true) => {
      controls.forEach(({ fit }) => fit());
      const width = Math.min(704, Math.floor(figure.clientWidth - 2 * 16));
      if (width < 200) return; // collapsed: it's drawn once it's shown
      svg.replaceChildren();
      svg.setAttribute("width", width);
      const canvas = new Canvas(svg, width);
      const isUnanswered = ([name]) => document.getElementById(`answer-${questions[name]}`); // the button of hidden_answers.js
      const unanswered = asks.filter(isUnanswered).map(([name, reveals]) => [name, reveals(values, numbers)]).filter(([, reveals]) => reveals);
      const locked = unanswered.find(([, reveals]) => reveals !== "partly");
      if (locked) canvas.height(1);
      const sentence = locked ? "" : kind.draw(values, canvas, numbers, unanswered.map(([name]) => name));
      if (locked) askFirst(notice, "this case", questions[locked[0]]);
      else if (unanswered.length) askFirst(notice, "the part that\u2019s left out", questions[unanswered[0][0]]);
      notice.hidden = !unanswered.length;
      caption.textContent = sentence;
      clearTimeout(timer);
      const texts = [sentence, ...(unanswered.length ? [notice.textContent] : [])].filter(Boolean).join(" ");
      timer = setTimeout(() => (announcement.textContent = texts), byReader ? 700 : 0);
    };
    const controls = Object.entries(kind.controls(numbers)).map(([name, spec]) => control(spec, values, name, draw));
    const form = make("div", { className: "controls" }, ...controls.flatMap(({ fields }) => fields));
    const title = make("p", { className: "title", textContent: kind.title });
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", kind.title);
    figure.replaceChildren(title, form, svg, notice, caption, announcement);
    window.addEventListener("resize", () => draw(false));
    draw(false);
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.interactive-figure").forEach(initialize));
  return { define: (kind, description) => (kinds[kind] = description), range, choice, text, steps, COLORS, LETTERS };
})();
