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
    if (node.matches(".interactive-figure")) continue; // it locks what would answer: interactive_figures.js
    if (!question || !(question.nodes.length || node.matches(".cell_output"))) continue;
    question.nodes.push(node);
  }
  return found;
};

// A question's form, inside its box. It has a field for a number or a choice of words, unless `asked` is null, and a button
// that shows the answer without a guess. Any guess shows it, too.
const field = (asked, index, done) => {
  const form = document.createElement("form");
  form.className = "guess";
  form.noValidate = true;
  if (!asked) return form;
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
    said.textContent = read ? read.said : "Fill in your guess first.";
    said.classList.toggle("right", Boolean(read?.right));
    said.classList.toggle("wrong", Boolean(read && !read.right && !read.unread));
    if (read && !read.unread) done(index);
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
  const asked = JSON.parse(document.getElementById("asked")?.textContent ?? "[]");
  const forms = questions.map(({ quote }, index) => {
    quote.id = `question-${index}`; // for the links of locked figures: interactive_figures.js
    quote.tabIndex = -1;
    const form = field(asked[index], index, (done) => keep(done));
    quote.append(form);
    return form;
  });

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
    button.textContent = asked[index] ? "Show it without a guess" : "I\u2019ve written mine down: show the answer";
    button.addEventListener("click", () => {
      keep(index);
      nodes[0].tabIndex = -1; // where the button was, for the keyboard and who listens
      nodes[0].focus({ preventScroll: true });
    });
    forms[index].insertBefore(button, forms[index].querySelector(".reading")); // at the end if there's no field
    // Found by the browser's search, or led to by a link: it is shown.
    nodes.forEach((node) => node.addEventListener("beforematch", () => keep(index), { once: true }));
  };

  const all = document.createElement("span");
  all.className = "answers-wait";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = Boolean(remembered().showAll);
  const label = document.createElement("label");
  label.append(box, " Show the answers");
  label.title = `To the ${waiting.length} questions on this page, and on all other pages`;
  const forget = document.createElement("button"); // if there's anything to forget
  Object.assign(forget, { type: "button", className: "forget", textContent: "Forget my guesses" });
  forget.title = "On all pages. They\u2019re stored only in this browser.";
  forget.addEventListener("click", () => {
    try {
      localStorage.removeItem(STORE);
    } catch {
      // nothing was kept
    }
    location.reload();
  });
  all.append(label);
  if (Object.keys(remembered()).length) all.append(forget);
  article.querySelector("p:has(> .launch)").append(all);

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
