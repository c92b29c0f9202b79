import type { Fields } from "../shared/schema";

/** Where to ask an application that has no panels here, and for what. */
export function AnswersPanel({ fields }: { fields: Fields | null }) {
  return (
    <section class="panel answers" aria-labelledby="answers-title">
      <header>
        <h2 id="answers-title">This application's answers are in the playground</h2>
        <a class="button" href="playground/">
          Open the playground
        </a>
      </header>
      <Names title="Queries" names={fields?.query ?? []} />
      <Names title="Subscriptions" names={fields?.subscription ?? []} />
      {!fields && <p class="note">What can be asked is in the application's schema.</p>}
    </section>
  );
}

function Names({ title, names }: { title: string; names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {names.map((name) => (
          <li key={name} class="code">
            {name}
          </li>
        ))}
      </ul>
    </>
  );
}
