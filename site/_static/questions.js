// An answer waits until it is asked for, or guessed: what a cell prints after a question, and the paragraphs that read it,
// fold away. Without this script, and on paper, all of it is there. What you asked for or guessed stays in your browser.
const STORE = "one-program-many-devices";

const remembered = () => {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // no storage, or what it holds cannot be read
  }
};

const remember = (changed) => {
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...remembered(), ...changed }));
  } catch {
    // a browser that keeps nothing: the choice holds for this page
  }
};

const isQuestion = (node) => node.matches("blockquote") && node.querySelector("strong")?.textContent === "Predict.";

// The page from top to bottom: headings, paragraphs, code, outputs.
const flow = (article) =>
  [...article.querySelectorAll("section > *:not(section)")].flatMap((node) =>
    node.matches("div.cell") ? [...node.children] : [node],
  );

// From the first output after a question to the next question or heading. Where subtitles stand between the question and
// its first output, the question is about all that they head.
const answers = (article) => {
  const found = [];
  let question = null;
  for (const node of flow(article)) {
    const level = /^H[1-6]$/.test(node.tagName) ? Number(node.tagName[1]) : 0;
    if (isQuestion(node)) {
      question = { quote: node, nodes: [], deepest: 2 };
      found.push(question);
    } else if (question && level && !question.nodes.length && level > 2) {
      question.deepest = 3;
    } else if (level && (level < 3 || question?.deepest === 2)) {
      question = null;
    }
    if (level && /^Exercise /.test(node.textContent)) question = null;
    if (node.matches(".moving")) continue; // it locks what would answer: moving.js
    if (!question || !(question.nodes.length || node.matches(".cell_output"))) continue;
    question.nodes.push(node);
  }
  return found;
};

// The field of a question: a number, or one of several words.
const field = (asked, index, done) => {
  const form = document.createElement("form");
  form.className = "guess";
  form.noValidate = true;
  const label = document.createElement("label");
  const box = document.createElement(asked.answers ? "select" : "input");
  if (asked.answers) box.append(...["", ...asked.answers].map((answer) => new Option(answer, answer)));
  else Object.assign(box, { size: 9, autocomplete: "off", inputMode: "decimal" });
  label.append("Your guess ", box);
  if (asked.unit) label.append(` ${asked.unit}`);
  const check = document.createElement("button");
  Object.assign(check, { type: "submit", className: "button quiet", textContent: "Check" });
  const said = document.createElement("p");
  said.className = "reading";
  said.setAttribute("role", "status");
  form.append(label, check, said);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const read = box.value.trim() && window.reading(asked, box.value);
    said.textContent = read ? read.said : "Fill in what you would guess.";
    if (read?.right) done(index);
  });
  return form;
};

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article");
  const questions = article ? answers(article) : [];
  const waiting = questions.map(({ nodes }) => nodes);
  if (!waiting.length) return;
  const page = location.pathname.split("/").pop();
  const shown = new Set(remembered()[page] ?? []);

  const show = (index) => {
    const nodes = waiting[index];
    document.getElementById(`answer-${index}`)?.remove();
    nodes.forEach((node) => node.removeAttribute("hidden"));
    window.dispatchEvent(new Event("resize")); // figures measure themselves anew
  };
  const keep = (index) => {
    shown.add(index);
    remember({ [page]: [...shown] });
    show(index);
  };
  const hide = (index) => {
    const nodes = waiting[index];
    nodes.forEach((node) => node.setAttribute("hidden", "until-found"));
    const button = document.createElement("button");
    button.type = "button";
    button.id = `answer-${index}`;
    button.className = "button quiet answer-waits";
    button.textContent = "I have written mine down: show the answer";
    button.addEventListener("click", () => {
      keep(index);
      nodes[0].tabIndex = -1; // where the button was, for the keyboard and who listens
      nodes[0].focus({ preventScroll: true });
    });
    nodes[0]?.before(button);
    // Found by the browser's search, or led to by a link: it is shown.
    nodes.forEach((node) => node.addEventListener("beforematch", () => keep(index), { once: true }));
  };

  const asked = JSON.parse(document.getElementById("asked")?.textContent ?? "[]");
  questions.forEach(({ quote }, index) => {
    if (asked[index]) quote.after(field(asked[index], index, keep));
  });

  const all = document.createElement("p");
  all.className = "answers-wait";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = Boolean(remembered().showAll);
  const label = document.createElement("label");
  label.append(box, ` Show the answers to the ${waiting.length} questions of this page, and of all others.`);
  const forget = document.createElement("button");
  Object.assign(forget, { type: "button", className: "forget", textContent: "Forget it, on all pages" });
  forget.addEventListener("click", () => {
    try {
      localStorage.removeItem(STORE);
    } catch {
      // nothing was kept
    }
    location.reload();
  });
  all.append(label, " Which answers you have seen is kept in this browser alone. ", forget);
  const title = article.querySelector("h1");
  (title.parentElement.querySelector(":scope > p:has(.launch)") ?? title).after(all);

  const fold = () =>
    waiting.forEach((nodes, index) => {
      if (box.checked || shown.has(index)) show(index);
      else if (!document.getElementById(`answer-${index}`)) hide(index);
    });
  box.addEventListener("change", () => {
    remember({ showAll: box.checked });
    fold();
  });
  fold();

  const lead = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const title = target?.querySelector(":scope > :is(h2, h3, h4)"); // a section may lie in an answer, title and all
    const index = waiting.findIndex((nodes) => nodes.some((node) => target && (node.contains(target) || node === title)));
    if (index < 0) return;
    show(index);
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", lead);
  lead();
});
