/** The header's buttons: language, projector size, theme, and the menu of narrow windows. */
import { t } from "core/i18n";
import { choice, nextTheme, onTheme, projector, setProjector, setTheme } from "core/theme";

const byId = (id) => document.getElementById(id);

function themeButton(button) {
  const names = { system: t("as the system"), light: t("light"), dark: t("dark") };
  const label = () => {
    const text = t("Theme: {theme}", { theme: names[choice()] });
    button.setAttribute("aria-label", text);
    button.title = text;
  };
  button.addEventListener("click", () => setTheme(nextTheme()));
  onTheme(label);
  label();
}

function projectorButton(button) {
  const show = () => button.setAttribute("aria-pressed", String(projector()));
  button.addEventListener("click", () => setProjector(!projector()));
  onTheme(show);
  show();
}

/** The link was written when the page was; scripts have since changed the address. */
function languageSwitch(link) {
  link.addEventListener("click", () => {
    const url = new URL(location.href);
    url.searchParams.set("lang", link.dataset.language);
    link.href = url.href;
  });
}

function menu(button, nav) {
  const set = (open) => {
    nav.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => set(!nav.classList.contains("open")));
  nav.addEventListener("click", (event) => event.target.closest("a") && set(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && nav.classList.contains("open")) {
      set(false);
      button.focus();
    }
  });
}

themeButton(byId("theme-button"));
projectorButton(byId("projector-button"));
languageSwitch(byId("language-switch"));
menu(byId("menu-button"), byId("site-nav"));
