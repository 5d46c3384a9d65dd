// Color theme, printing, and the start of the page.

const root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";

function labelThemeButton() {
  byId("theme").textContent = isDark() ? "Light mode" : "Dark mode";
}

function setTheme(theme) {
  root.dataset.theme = theme;
  try {
    localStorage.setItem("probewise-theme", theme);
  } catch {
    // a page opened from disk may have no local storage
  }
}

try {
  const saved = localStorage.getItem("probewise-theme");
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
} catch {
  // no local storage
}
byId("theme").hidden = false;
byId("theme").addEventListener("click", () => {
  setTheme(isDark() ? "light" : "dark");
  labelThemeButton();
});
prefersDark.addEventListener("change", labelThemeButton);
window.addEventListener("beforeprint", () => {
  root.classList.add("paper"); // the width of a printed page
  drawAll();
});
window.addEventListener("afterprint", () => {
  root.classList.remove("paper");
  drawAll();
});
let drawnWidth = root.clientWidth;
window.addEventListener("resize", () => {
  if (drawnWidth === root.clientWidth || root.classList.contains("paper")) return;
  drawnWidth = root.clientWidth;
  requestAnimationFrame(drawAll);
});

labelThemeButton();
makeTable();
makeExport();
drawAll();
root.dataset.drawn = "yes";
