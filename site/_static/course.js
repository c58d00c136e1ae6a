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
