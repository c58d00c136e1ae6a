// Pictures that answer the reader's hand: plain SVG, drawn anew at each change of a control, of this file and of one in
// interactive_figures/ for each kind. The page works without: its figures stand there, still.
//
// interactiveFigures.define(kind, { title, controls, draw }). `controls(numbers)` gives, by name, what the reader sets: range, choice,
// text or steps below. `draw(values, canvas, numbers)` draws, and returns the sentence that says what is seen: it stands
// below the picture, and is what a screen reader gets. `numbers` are the lesson's own, from tools/site/interactive_figures.py.
// `asks`, if any, has for a question of the lesson, by its prediction's name, whether these values would show its answer:
// (values, numbers) => true. They are drawn once that answer has been seen. Where "partly" takes the place of true, they are
// drawn at once without the answer: `draw` gets the names of such questions as its fourth argument.
window.interactiveFigures = (() => {
  const kinds = {};
  const make = (name, properties = {}, ...inside) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...inside);
    return element;
  };

  // Okabe and Ito's colours, as in the figures: utils/show/notebook_figure.py. Letters on them are black or white.
  const COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
  const LETTERS = ["#fff", "#000", "#000", "#000", "#000", "#000", "#000", "#000"];

  // Shapes in pixels. `ink`, `faint` and `ground` follow the page's light or dark; the rest is any CSS colour.
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
    // What the colours mean, in as many rows as the width asks: [colour or "dashes", words] each, and attributes of the
    // colour, if any. Returns where it ends.
    key(y, entries) {
      let x = 0;
      for (const [fill, words, more] of entries) {
        const said = this.text(x + 18, y + 8, words, { textAnchor: "start", fontSize: 12 });
        const wide = 18 + said.getComputedTextLength();
        if (x > 0 && x + wide > this.width) {
          [x, y] = [0, y + 19];
          said.setAttribute("x", 18);
          said.setAttribute("y", y + 8);
        }
        if (fill === "dashes") this.line([[x + 6, y], [x + 6, y + 15]], "ink", { strokeDasharray: "4 3", strokeWidth: 2 });
        else this.rect(x, y + 2, 12, 12, fill, more);
        x += wide + 16;
      }
      return y + 19;
    }
    // From one point towards another, with a head.
    arrow([x0, y0], [x1, y1], stroke = "ink", more = {}) {
      const length = Math.hypot(x1 - x0, y1 - y0) || 1;
      const [dx, dy] = [((x1 - x0) / length) * 7, ((y1 - y0) / length) * 7];
      this.line([[x0, y0], [x1, y1]], stroke, more);
      this.line([[x1 - dx - dy * 0.6, y1 - dy + dx * 0.6], [x1, y1], [x1 - dx + dy * 0.6, y1 - dy - dx * 0.6]], stroke, more);
    }
  }

  // `max` is a number, or a function of the values.
  const range = (label, min, max, value, { step = 1, shown = String } = {}) => ({ is: "range", label, min, max, value, step, shown });
  const choice = (label, words, value = words[0]) => ({ is: "choice", label, words, value });
  const text = (label, value, { size = 12 } = {}) => ({ is: "text", label, value, size });
  // One step after the other, by buttons, or by itself where motion is wanted. `last(values)` is the number of the last one.
  const steps = (label, last, value = 0) => ({ is: "steps", label, last, value, min: 0, step: 1, shown: String });

  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // What the reader sets, and how the values are read from it.
  const control = (wanted, values, name, changed) => {
    const field = make("label", {}, `${wanted.label} `);
    values[name] = wanted.value;
    const set = (value) => {
      values[name] = value;
      changed();
    };
    if (wanted.is === "choice") {
      const box = make("select", {}, ...wanted.words.map((word) => new Option(word, word, word === wanted.value, word === wanted.value)));
      box.addEventListener("change", () => set(box.value));
      field.append(box);
      return { fields: [field], fit: () => {} };
    }
    if (wanted.is === "text") {
      const box = make("input", { type: "text", value: wanted.value, size: wanted.size, autocomplete: "off", spellcheck: false });
      box.addEventListener("input", () => set(box.value));
      field.append(box);
      return { fields: [field], fit: () => {} };
    }
    const box = make("input", { type: "range", min: wanted.min, step: wanted.step });
    const said = make("span", { className: "value" });
    said.setAttribute("aria-hidden", "true"); // the range says it
    const end = wanted.is === "steps" ? wanted.last : wanted.max;
    const last = () => (typeof end === "function" ? end(values) : end);
    let before = 0;
    const fit = () => {
      box.max = last(); // the browser's own value follows
      const ended = wanted.is === "steps" && before && values[name] === before; // who stands at the end stays there
      values[name] = ended ? last() : Math.min(values[name], last());
      before = last();
      box.value = values[name];
      said.textContent = wanted.is === "steps" ? `${values[name]} of ${last()}` : wanted.shown(values[name]);
      box.setAttribute("aria-valuetext", said.textContent);
    };
    box.addEventListener("input", () => set(Number(box.value)));
    field.append(box, " ", said);
    if (wanted.is !== "steps") return { fields: [field], fit };

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
    const buttons = [step("Back", -1), step("Next", 1), ...(still() ? [] : [play])];
    return { fields: [field, make("span", { className: "steps" }, ...buttons)], fit };
  };

  // The box for a case, or the part of one, that a question asks about. The link leads to the question: hidden_answers.js.
  const waits = (lock, what, index) => {
    const link = make("a", { href: `#question-${index}`, textContent: "Go to the question" });
    lock.replaceChildren(`The page asks you about ${what}, so guess first, and then it\u2019s drawn. `, link);
  };

  const set = (place) => {
    const kind = kinds[place.dataset.kind];
    if (!kind) return;
    const numbers = JSON.parse(place.querySelector("script")?.textContent ?? "null");
    const questions = JSON.parse(place.dataset.questions); // null on a page without questions, where nothing is locked
    const asks = questions ? Object.entries(kind.asks ?? {}) : [];
    const strange = asks.find(([name]) => !(name in questions));
    if (strange) throw new Error(`no question of this page is called ${strange[0]}`);
    const values = {};
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const said = make("p", { className: "said" });
    const heard = make("p", { className: "heard" }); // the same for who listens, when the hand has come to rest
    heard.setAttribute("role", "status");
    const lock = make("p", { className: "lock", hidden: true });
    [svg, said].forEach((seen) => seen.setAttribute("aria-hidden", "true"));
    let rest = null;
    const draw = (byHand = true) => {
      all.forEach(({ fit }) => fit());
      const width = Math.min(704, Math.floor(place.clientWidth - 2 * 16));
      if (width < 200) return; // folded away: drawn when it is shown
      svg.replaceChildren();
      svg.setAttribute("width", width);
      const canvas = new Canvas(svg, width);
      const waiting = ([name]) => document.getElementById(`answer-${questions[name]}`); // hidden_answers.js
      const hidden = asks.filter(waiting).map(([name, so]) => [name, so(values, numbers)]).filter(([, so]) => so);
      const locked = hidden.find(([, so]) => so !== "partly");
      if (locked) canvas.height(1);
      const sentence = locked ? "" : kind.draw(values, canvas, numbers, hidden.map(([name]) => name));
      if (locked) waits(lock, "this case", questions[locked[0]]);
      else if (hidden.length) waits(lock, "the part that\u2019s left out", questions[hidden[0][0]]);
      lock.hidden = !hidden.length;
      said.textContent = sentence;
      clearTimeout(rest);
      const both = [sentence, ...(hidden.length ? [lock.textContent] : [])].filter(Boolean).join(" ");
      rest = setTimeout(() => (heard.textContent = both), byHand ? 700 : 0);
    };
    const all = Object.entries(kind.controls(numbers)).map(([name, wanted]) => control(wanted, values, name, draw));
    const form = make("div", { className: "controls" }, ...all.flatMap(({ fields }) => fields));
    const title = make("p", { className: "title", textContent: kind.title });
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", kind.title);
    place.replaceChildren(title, form, svg, lock, said, heard);
    window.addEventListener("resize", () => draw(false));
    draw(false);
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.interactive-figure").forEach(set));
  return { picture: (kind, description) => (kinds[kind] = description), range, choice, text, steps, COLORS, LETTERS };
})();
