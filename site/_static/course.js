// A figure that is wider than a phone gets a box that scrolls, by keyboard too.
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
  }
});

// Code and outputs fit: letters shrink a little for long lines, and prose of more than 88 columns (a message of JAX's, say)
// goes on below. A table does not: on a narrow screen it scrolls, and its cut edge is seen.
document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll(".bd-article pre")) {
    const long = pre.textContent.split("\n").filter((line) => line.length > 88);
    if (!long.length) continue;
    if (long.some((line) => /\S {3,}\S/.test(line)) || !pre.closest(".cell_output")) {
      pre.style.setProperty("--columns", Math.max(...long.map((line) => line.length)));
    } else pre.classList.add("prose");
  }
});

// What opens a cell is told as it is read; Sphinx gives it another name.
document.addEventListener("DOMContentLoaded", () => {
  for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
});

// The route that was chosen on the front page goes along: each of its lessons says where it stands, and what is next.
document.addEventListener("DOMContentLoaded", () => {
  const chosen = new URLSearchParams(location.search).get("route");
  for (const place of document.querySelectorAll("p.route")) place.hidden = place.dataset.route !== chosen;
});
