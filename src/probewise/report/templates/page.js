// Light, dark, paper; and the start.

const root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";

function nameTheme() {
  byId("theme").textContent = isDark() ? "Light colours" : "Dark colours";
}

function keepTheme(theme) {
  root.dataset.theme = theme;
  try {
    localStorage.setItem("probewise-theme", theme);
  } catch {
    // a page opened from disk may not be allowed to remember
  }
}

try {
  const kept = localStorage.getItem("probewise-theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
} catch {
  // as above
}
byId("theme").hidden = false;
byId("theme").addEventListener("click", () => {
  keepTheme(isDark() ? "light" : "dark");
  nameTheme();
});
prefersDark.addEventListener("change", nameTheme);
window.addEventListener("beforeprint", () => {
  root.classList.add("paper"); // as wide as a sheet
  drawAll();
});
window.addEventListener("afterprint", () => {
  root.classList.remove("paper");
  drawAll();
});
let drawnAt = root.clientWidth;
window.addEventListener("resize", () => {
  if (drawnAt === root.clientWidth || root.classList.contains("paper")) return;
  drawnAt = root.clientWidth;
  requestAnimationFrame(drawAll);
});

nameTheme();
makeTable();
makeTakeaway();
drawAll();
root.dataset.drawn = "yes";
