// Put each figure into a box that scrolls, also by keyboard, if the figure is wider than the screen. A lesson's opening figure
// is first shown whole, and a button enlarges it, after which it scrolls.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll("div.cell_output img")) {
    const box = document.createElement("div");
    box.className = "wide-figure";
    image.replaceWith(box);
    box.append(image);
    const fit = () => {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", "A figure that scrolls sideways");
      } else {
        ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name));
      }
    };
    image.addEventListener("load", fit);
    window.addEventListener("resize", fit);
    fit();
    if (!box.closest(".tag_opening")) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "button quiet enlarge" });
    const show = (whole) => {
      box.classList.toggle("whole", whole);
      button.textContent = whole ? "Enlarge the picture" : "Show the whole picture";
      fit();
    };
    button.addEventListener("click", () => show(!box.classList.contains("whole")));
    (box.closest("a") ?? box).after(button); // the figure may be a link to its file
    show(true);
  }
});

// Make code and outputs fit. The font shrinks a little for long lines, and prose of more than 88 columns, such as an error
// message, wraps. Tables don't wrap, so on a narrow screen they scroll.
document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll(".bd-article pre")) {
    const long = pre.textContent.split("\n").filter((line) => line.length > 88);
    if (!long.length) continue;
    if (long.some((line) => /\S {3,}\S/.test(line)) || !pre.closest(".cell_output")) {
      pre.style.setProperty("--columns", Math.max(...long.map((line) => line.length)));
    } else pre.classList.add("prose");
  }
});

// Show an exercise's difficulty and minutes smaller than its title, and leave them out of the table of contents.
document.addEventListener("DOMContentLoaded", () => {
  for (const heading of document.querySelectorAll(".bd-article h3, .toc-entry > a")) {
    const title = [...heading.childNodes].find((node) => node.nodeType === Node.TEXT_NODE && node.data.includes(" (●"));
    if (!title) continue;
    const effort = document.createElement("span");
    effort.className = "effort";
    const rest = title.splitText(title.data.indexOf(" (●"));
    rest.replaceWith(effort);
    effort.append(rest);
  }
});

// Let screen readers read the text of a collapsed cell's summary, for which Sphinx sets a different label.
document.addEventListener("DOMContentLoaded", () => {
  for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
});

// If the reader chose a route on the front page, show its lessons' positions on it, and links to the next lesson.
document.addEventListener("DOMContentLoaded", () => {
  const chosen = new URLSearchParams(location.search).get("route");
  for (const position of document.querySelectorAll("p.route")) position.hidden = position.dataset.route !== chosen;
});

// Show a term's meaning while the mouse is over its link, or while the link has the focus. Escape hides it.
document.addEventListener("DOMContentLoaded", () => {
  const meanings = JSON.parse(document.getElementById("terms")?.textContent ?? "{}");
  for (const [anchor, meaning] of Object.entries(meanings)) {
    const term = document.getElementById(anchor);
    const link = term?.querySelector("a");
    if (!link) continue;
    link.removeAttribute("title"); // otherwise the browser shows it, too
    const tip = document.createElement("span");
    Object.assign(tip, { id: `${anchor}-meaning`, className: "meaning", textContent: meaning, hidden: true });
    tip.setAttribute("role", "tooltip");
    link.setAttribute("aria-describedby", tip.id);
    term.append(tip);
    const show = () => {
      tip.hidden = false;
      tip.style.left = "0";
      const [box, room] = [tip.getBoundingClientRect(), document.documentElement.clientWidth - 16];
      tip.style.left = `${Math.min(0, room - box.right)}px`;
    };
    const hide = () => (tip.hidden = true);
    term.addEventListener("mouseenter", show);
    term.addEventListener("mouseleave", () => link === document.activeElement || hide());
    link.addEventListener("focus", show);
    link.addEventListener("blur", hide);
    term.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  }
});

// Make the front page's links open lessons on the platform that the reader chooses.
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.querySelector(".platforms select");
  if (!menu) return;
  menu.closest(".platforms").hidden = false;
  const updateLinks = () => {
    for (const link of document.querySelectorAll("a.opens")) {
      link.href = JSON.parse(link.dataset.addresses)[menu.value];
      link.setAttribute("aria-label", link.getAttribute("aria-label").replace(/\w+$/, menu.value));
    }
  };
  menu.addEventListener("change", updateLinks);
  updateLinks(); // after a reload, the browser keeps the choice
});

// Show each figure in the version for the page's theme. (tools/site/dark_figures.py writes the dark ones.)
document.addEventListener("DOMContentLoaded", () => {
  const figures = [...document.querySelectorAll("img[data-dark]")].map((image) => [image, image.getAttribute("src"), image.dataset.dark]);
  const show = () => {
    const isDark = document.documentElement.dataset.theme === "dark";
    for (const [image, light, dark] of figures) {
      const source = isDark ? dark : light;
      if (image.getAttribute("src") !== source) image.setAttribute("src", source);
    }
  };
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  show();
});
