import { useEffect, useState } from "preact/hooks";

type Theme = "light" | "dark";

const stored = "streamgauge:theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function system(): Theme {
  return dark.matches ? "dark" : "light";
}

function chosen(): Theme | null {
  try {
    const theme = localStorage.getItem(stored);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
}

function choose(theme: Theme | null): void {
  try {
    if (theme) localStorage.setItem(stored, theme);
    else localStorage.removeItem(stored);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Puts the theme chosen before on the page; none: that of the system. */
export function applyTheme(theme: Theme | null = chosen()): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** The theme shown, and a function that goes to the other one. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => chosen() ?? system());
  useEffect(() => {
    const follow = () => setTheme(chosen() ?? system());
    dark.addEventListener("change", follow);
    return () => dark.removeEventListener("change", follow);
  }, []);
  const toggle = () => {
    const other = theme === "dark" ? "light" : "dark";
    const choice = other === system() ? null : other;
    choose(choice);
    applyTheme(choice);
    setTheme(other);
  };
  return [theme, toggle];
}
