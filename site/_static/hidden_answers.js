// Hide the answer to each question, that is, the outputs and paragraphs after it, until the reader guesses or asks to see it.
// Without JavaScript, and on paper, all answers are visible. The reader's progress is stored only in the browser.
const STORE = "one-program-many-devices";

const remembered = () => {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // there's no storage, or its content isn't valid
  }
};

const remember = (changes) => {
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...remembered(), ...changes }));
  } catch {
    // the browser stores nothing, so the choice applies only until the page is left
  }
};

const isQuestion = (node) => node.matches("blockquote.predict");

// Return the page's headings, paragraphs, code and outputs, from top to bottom.
const pageElements = (article) =>
  [...article.querySelectorAll("section > *:not(section)")].flatMap((node) =>
    node.matches("div.cell") ? [...node.children] : [node],
  );

// Return each question with its answer: everything from the first output after it to the next question or heading. If there
// are subheadings between a question and its first output, the answer includes the sections under all of them.
const findQuestions = (article) => {
  const questions = [];
  let question = null;
  for (const node of pageElements(article)) {
    const level = /^H[1-6]$/.test(node.tagName) ? Number(node.tagName[1]) : 0;
    if (isQuestion(node)) {
      question = { quote: node, nodes: [], deepest: 2 };
      questions.push(question);
    } else if (question && level && !question.nodes.length && level > 2) {
      question.deepest = 3;
    } else if (level && (level < 3 || question?.deepest === 2)) {
      question = null;
    }
    if (level && /^Exercise /.test(node.textContent)) question = null;
    if (node.matches(".interactive-figure")) continue; // interactive_figures.js hides its answers
    if (!question || !(question.nodes.length || node.matches(".cell_output"))) continue;
    question.nodes.push(node);
  }
  return questions;
};

// Create a question's form, in which the reader enters a number or chooses a word. It's empty if `prediction` is null. Any valid
// guess shows the answer by calling `reveal(index)`.
const guessForm = (prediction, index, reveal) => {
  const form = document.createElement("form");
  form.className = "guess";
  form.noValidate = true;
  if (!prediction) return form;
  const label = document.createElement("label");
  const box = document.createElement(prediction.answers ? "select" : "input");
  if (prediction.answers) box.append(...["", ...prediction.answers].map((answer) => new Option(answer, answer)));
  else Object.assign(box, { size: 9, autocomplete: "off", inputMode: "decimal" });
  label.append("Your guess ", box);
  if (prediction.unit) label.append(` ${prediction.unit}`);
  const check = document.createElement("button");
  Object.assign(check, { type: "submit", className: "button quiet", textContent: "Check" });
  const status = document.createElement("p");
  status.className = "verdict";
  status.setAttribute("role", "status");
  form.append(label, check, status);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const verdict = box.value.trim() && window.guessVerdict(prediction, box.value);
    status.textContent = verdict ? verdict.message : "Fill in your guess first.";
    status.classList.toggle("right", Boolean(verdict?.right));
    status.classList.toggle("wrong", Boolean(verdict && !verdict.right && !verdict.invalid));
    if (verdict && !verdict.invalid) reveal(index);
  });
  return form;
};

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article");
  const questions = article ? findQuestions(article) : [];
  const hiddenAnswers = questions.map(({ nodes }) => nodes);
  if (!hiddenAnswers.length) return;
  const page = location.pathname.split("/").pop();
  const shown = new Set(remembered()[page] ?? []);
  const predictions = JSON.parse(document.getElementById("predictions")?.textContent ?? "[]");
  const forms = questions.map(({ quote }, index) => {
    quote.id = `question-${index}`; // the target of links in interactive_figures.js
    quote.tabIndex = -1;
    const form = guessForm(predictions[index], index, (answered) => reveal(answered));
    quote.append(form);
    return form;
  });

  const show = (index) => {
    const nodes = hiddenAnswers[index];
    document.getElementById(`answer-${index}`)?.remove();
    nodes.forEach((node) => node.removeAttribute("hidden"));
    window.dispatchEvent(new Event("resize")); // make figures measure their width again
  };
  const reveal = (index) => {
    shown.add(index);
    remember({ [page]: [...shown] });
    show(index);
  };
  const hide = (index) => {
    const nodes = hiddenAnswers[index];
    nodes.forEach((node) => node.setAttribute("hidden", "until-found"));
    const button = document.createElement("button");
    button.type = "button";
    button.id = `answer-${index}`;
    button.className = "button quiet show-answer";
    button.textContent = predictions[index] ? "Show it without a guess" : "I\u2019ve written mine down: show the answer";
    button.addEventListener("click", () => {
      reveal(index);
      nodes[0].tabIndex = -1; // move the focus to where the button was, for keyboards and screen readers
      nodes[0].focus({ preventScroll: true });
    });
    forms[index].insertBefore(button, forms[index].querySelector(".verdict")); // at the end if the form is empty
    // Show the answer if the browser's search finds it, or if a link leads to it.
    nodes.forEach((node) => node.addEventListener("beforematch", () => reveal(index), { once: true }));
  };

  const options = document.createElement("span");
  options.className = "answer-options";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = Boolean(remembered().showAll);
  const label = document.createElement("label");
  label.append(box, " Show the answers");
  label.title = `To the ${hiddenAnswers.length} questions on this page, and on all other pages`;
  const forgetButton = document.createElement("button"); // added only if something is stored
  Object.assign(forgetButton, { type: "button", className: "forget", textContent: "Forget my guesses" });
  forgetButton.title = "On all pages. They\u2019re stored only in this browser.";
  forgetButton.addEventListener("click", () => {
    try {
      localStorage.removeItem(STORE);
    } catch {
      // nothing was stored
    }
    location.reload();
  });
  options.append(label);
  if (Object.keys(remembered()).length) options.append(forgetButton);
  article.querySelector("p:has(> .launch)").append(options);

  const update = () =>
    hiddenAnswers.forEach((nodes, index) => {
      if (box.checked || shown.has(index)) show(index);
      else if (!document.getElementById(`answer-${index}`)) hide(index);
    });
  box.addEventListener("change", () => {
    remember({ showAll: box.checked });
    update();
  });
  update();

  const showTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const title = target?.querySelector(":scope > :is(h2, h3, h4)"); // an answer may contain a section with its heading
    const index = hiddenAnswers.findIndex((nodes) => nodes.some((node) => target && (node.contains(target) || node === title)));
    if (index < 0) return;
    show(index);
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", showTarget);
  showTarget();
});
