// An answer waits until it is asked for: what a cell prints after a question, and the paragraphs that read it, fold away.
// Without this script, and on paper, all of it is there.
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

// From the first output after a question to the next question or heading. Where subtitles stand between the question
// and its first output, the question is about all that they head.
const answers = (article) => {
  const found = [];
  let question = null;
  for (const node of flow(article)) {
    const level = /^H[1-6]$/.test(node.tagName) ? Number(node.tagName[1]) : 0;
    if (isQuestion(node)) {
      question = { nodes: [], deepest: 2 };
      found.push(question);
    } else if (question && level && !question.nodes.length && level > 2) {
      question.deepest = 3;
    } else if (level && (level < 3 || question?.deepest === 2)) {
      question = null;
    }
    if (level && /^Exercise /.test(node.textContent)) question = null;
    if (question && (question.nodes.length || node.matches(".cell_output"))) question.nodes.push(node);
  }
  return found.map(({ nodes }) => nodes).filter((nodes) => nodes.length);
};

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article");
  const waiting = article ? answers(article) : [];
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
    nodes[0].before(button);
    // Found by the browser's search, or led to by a link: it is shown.
    nodes.forEach((node) => node.addEventListener("beforematch", () => keep(index), { once: true }));
  };

  const all = document.createElement("p");
  all.className = "answers-wait";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = Boolean(remembered().showAll);
  const label = document.createElement("label");
  label.append(box, ` Show the answers to the ${waiting.length} questions of this page, and of all others`);
  all.append(label);
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
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const index = waiting.findIndex((nodes) => nodes.some((node) => target && node.contains(target)));
    if (index < 0) return;
    show(index);
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", lead);
  lead();
});
