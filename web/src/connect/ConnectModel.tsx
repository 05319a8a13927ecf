/** Connects a model: a provider's key, a server on this machine, any address. Invariant: what was typed is kept when it fails. */
import { useEffect, useId, useState } from "react";
import {
  type Connect,
  type Connection,
  listConnections,
  type Provider,
  saveConnection,
  type Tested,
  testConnection,
} from "../api/around";
import { readFailure } from "../api/failure";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Field } from "../ui/Field";
import { connectionName, connectOf, type Form, PLACES, type Place, providerName, providersAt } from "./provider";
import "./connect.css";

interface Props {
  onConnected(connection: Connection): Promise<void> | void;
}

const EMPTY: Form = { place: "key", provider: "", key: "", address: "", model: "" };

export function ConnectModel({ onConnected }: Props) {
  const t = useText();
  const [providers, setProviders] = useState<Provider[] | null | undefined>(undefined);
  const [form, setForm] = useState<Form>(EMPTY);
  useEffect(() => {
    listConnections().then(
      (answer) => {
        const found = answer?.providers ?? null;
        setProviders(found);
        setForm((now) => (now.provider ? now : { ...now, provider: providersAt("key", found ?? [])[0]?.name ?? "" }));
      },
      () => setProviders(null),
    );
  }, []);
  return (
    <section className="connect" aria-label={t.welcome.connectTitle}>
      <h2>{t.welcome.connectTitle}</h2>
      {providers === null && <p>{t.around.connect.missing}</p>}
      {providers && <ConnectForm providers={providers} form={form} onForm={setForm} onConnected={onConnected} />}
    </section>
  );
}

interface FormProps extends Props {
  providers: Provider[];
  form: Form;
  onForm(form: Form): void;
}

type State =
  | { at: "rest" }
  | { at: "asking" }
  | { at: "tested"; result: Tested; connect: Connect }
  | { at: "done"; model: string };

function ConnectForm({ providers, form, onForm, onConnected }: FormProps) {
  const t = useText();
  const words = t.around.connect;
  const id = useId();
  const [state, setState] = useState<State>({ at: "rest" });
  const choices = providersAt(form.place, providers);
  const provider = providers.find((one) => one.name === form.provider);
  const set = (change: Partial<Form>) => {
    onForm({ ...form, ...change });
    if (state.at !== "asking") setState({ at: "rest" });
  };
  const choose = (place: Place) => {
    const first = providersAt(place, providers)[0];
    set({ place, provider: first?.name ?? "", address: first?.base_url ?? "", model: "" });
  };
  const ask = async (): Promise<{ result: Tested; connect: Connect }> => {
    setState({ at: "asking" });
    const connect = connectOf(form, provider);
    const result = await testConnection(connect).catch((error: unknown): Tested => {
      return { ok: false, kind: "entry", detail: readFailure(error).detail };
    });
    const tested = result ?? { ok: false as const, kind: "entry", detail: words.missing };
    setState({ at: "tested", result: tested, connect });
    return { result: tested, connect };
  };
  const keep = async (connect: Connect) => {
    const model = connect.model ?? "";
    try {
      const kept = await saveConnection(connectionName(model), connect);
      if (!kept) throw new Error(words.missing);
      // A key that has arrived has no business in the page any more.
      onForm({ ...form, key: "" });
      setState({ at: "done", model: kept.model });
      await onConnected(kept);
    } catch (error) {
      const detail = readFailure(error).detail;
      setState({ at: "tested", result: { ok: false, kind: "entry", detail }, connect });
    }
  };
  const connectNow = async () => {
    const { result, connect } = await ask();
    if (result.ok) await keep({ ...connect, model: result.model });
  };
  const models = state.at === "tested" && state.result.ok ? state.result.models : [];
  const asking = state.at === "asking";
  return (
    <form
      className="connect-form"
      onSubmit={(event) => {
        event.preventDefault();
        void connectNow();
      }}
    >
      <p>{words.intro}</p>
      <fieldset className="connect-places">
        <legend className="unseen">{words.kind}</legend>
        {PLACES.map((place) => (
          <label key={place}>
            <input type="radio" name={`${id}-place`} checked={form.place === place} onChange={() => choose(place)} />
            <span>{words[place]}</span>
          </label>
        ))}
      </fieldset>
      <div className="connect-fields">
        {form.place !== "other" && (
          <Field id={`${id}-provider`} label={form.place === "key" ? words.provider : words.server}>
            <select
              id={`${id}-provider`}
              className="field"
              value={form.provider}
              onChange={(event) => {
                const chosen = choices.find((one) => one.name === event.target.value);
                set({ provider: event.target.value, address: chosen?.base_url ?? "", model: "" });
              }}
            >
              {choices.map((one) => (
                <option key={one.name} value={one.name}>
                  {providerName(one.name)}
                </option>
              ))}
            </select>
          </Field>
        )}
        {form.place !== "key" && (
          <Field id={`${id}-address`} label={words.address}>
            <input
              id={`${id}-address`}
              className="field"
              type="url"
              inputMode="url"
              spellCheck={false}
              placeholder={words.addressHint}
              value={form.address}
              onChange={(event) => set({ address: event.target.value })}
            />
          </Field>
        )}
        {form.place !== "local" && (
          <Field id={`${id}-key`} label={form.place === "key" ? words.apiKey : words.apiKeyOptional}>
            <input
              id={`${id}-key`}
              className="field"
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={form.key}
              onChange={(event) => set({ key: event.target.value })}
            />
          </Field>
        )}
        <Field id={`${id}-model`} label={words.model}>
          <input
            id={`${id}-model`}
            className="field"
            spellCheck={false}
            list={`${id}-models`}
            placeholder={provider?.model ?? words.modelAny}
            value={form.model}
            onChange={(event) => onForm({ ...form, model: event.target.value })}
          />
          <datalist id={`${id}-models`}>
            {models.map((model) => (
              <option key={model} value={model} />
            ))}
          </datalist>
        </Field>
      </div>
      <div className="connect-actions">
        <Button type="submit" look="primary" disabled={asking}>
          {words.connect}
        </Button>
        <Button disabled={asking} onClick={() => void ask()}>
          {words.test}
        </Button>
        <span role="status">
          {asking && (
            <>
              <span className="spinner" /> {words.testing}
            </>
          )}
          {state.at === "tested" && state.result.ok && words.ok(state.result.model, state.result.latency_ms)}
          {state.at === "done" && words.connected(state.model)}
        </span>
      </div>
      {state.at === "tested" && !state.result.ok && (
        <div className="notice notice-bad" role="alert">
          <div>
            <h3>{words.failed[state.result.kind] ?? t.around.failed}</h3>
            <p>{words.next[state.result.kind]}</p>
            <p>
              <code>{state.result.detail}</code>
            </p>
            {state.connect.model && state.result.kind !== "entry" && (
              <Button small onClick={() => void keep(state.connect)}>
                {words.anyway}
              </Button>
            )}
          </div>
        </div>
      )}
    </form>
  );
}
