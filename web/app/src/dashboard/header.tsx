import { useState } from "preact/hooks";
import type { Status } from "../shared/client";
import type { Page } from "../shared/page";
import { dayOf, span, utc } from "./format";
import { useNow } from "./live";
import { useTheme } from "./theme";

interface Props {
  page: Page | undefined;
  status: Status;
  streamTime: number;
  needsToken: boolean;
  token: string;
  setToken: (token: string) => void;
}

export function Header({ page, status, streamTime, needsToken, token, setToken }: Props) {
  const [theme, toggle] = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <header class="top">
      <div class="brand">
        <Mark />
        <h1>
          Streamgauge <span>{page?.title ?? " "}</span>
        </h1>
      </div>
      <Clock streamTime={streamTime} />
      <Connection status={status} instance={page?.instance} />
      {needsToken && <TokenField token={token} setToken={setToken} />}
      <nav>
        <a class="button" href="playground/">
          Playground
        </a>
        <button class="icon" onClick={toggle} aria-label={`Go to the ${other} theme`} title={`Go to the ${other} theme`}>
          {theme === "dark" ? <Sun /> : <Moon />}
        </button>
      </nav>
    </header>
  );
}

function Connection({ status, instance }: { status: Status; instance: string | undefined }) {
  const live = status.state === "live";
  const words = live ? "Live" : status.attempt > 1 || status.state === "waiting" ? `Reconnecting, attempt ${Math.max(1, status.attempt)}` : "Connecting";
  return (
    <p class={`connection ${live ? "live" : "away"}`} role="status">
      <i class="dot" aria-hidden="true" />
      {words}
      {live && instance && <small> from instance {instance}</small>}
    </p>
  );
}

/** The stream's time, and how far it is behind the clock. */
function Clock({ streamTime }: { streamTime: number }) {
  const now = useNow();
  const known = Number.isFinite(streamTime);
  const behind = now - streamTime;
  return (
    <p class="clock">
      <small>Stream time</small>
      <b>{known ? `${dayOf(streamTime)}, ${utc(streamTime, "clock")} UTC` : "–"}</b>
      <span>{!known ? " " : behind > 90_000 ? `${span(behind)} behind the clock` : "with the clock"}</span>
    </p>
  );
}

function TokenField({ token, setToken }: { token: string; setToken: (token: string) => void }) {
  const [text, setText] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    setToken(text);
    setText("");
  };
  return (
    <form class="token" onSubmit={submit}>
      <label for="token" class="hidden">
        Bearer token
      </label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        placeholder={token ? "token in use; another one" : "Bearer token"}
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
      />
      <button type="submit">Use</button>
    </form>
  );
}

/** A gauge's staff in moving water. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="9" class="ground" />
      <path class="staff" d="M16 5v20M16 7h5M16 11h3.5M16 15h5" />
      <path class="water" d="M0 20c4-3 8-3 12 0s8 3 12 0 6-3 8-2v6a9 9 0 0 1-9 8H9a9 9 0 0 1-9-8z" />
    </svg>
  );
}

function Sun() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <circle cx="12" cy="12" r="4.5" />
      <path d="M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2" />
    </svg>
  );
}

function Moon() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <path d="M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z" />
    </svg>
  );
}
