/* Runs before the first paint, so that the page never flashes in the wrong theme. Classic on
   purpose: a module would run too late. Without a choice the attribute stays absent and the
   system decides. */
(function () {
  var root = document.documentElement;
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    if (localStorage.getItem("projector") === "on") root.dataset.projector = "";
  } catch {
    // Storage may be forbidden; the system's theme is a good answer then.
  }
})();
