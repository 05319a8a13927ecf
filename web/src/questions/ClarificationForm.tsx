/** Several values asked for at once. Invariant: it cannot be sent while something required is missing. */
import { useId, useState } from "react";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { type FormField, formText, missingFields } from "./clarification";

type Value = string | string[] | boolean;

export function ClarificationForm({ fields, onSubmit }: { fields: FormField[]; onSubmit(text: string): void }) {
  const t = useText();
  const [values, setValues] = useState<ReadonlyMap<string, Value>>(new Map());
  const [tried, setTried] = useState(false);
  const missing = missingFields(fields, values);
  return (
    <form
      className="question-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (missing.length === 0) onSubmit(formText(fields, values));
      }}
    >
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          value={values.get(field.name)}
          bad={tried && missing.includes(field.name)}
          onChange={(value) => setValues(new Map(values).set(field.name, value))}
        />
      ))}
      {tried && missing.length > 0 && (
        <p className="tool-note tool-note-bad" role="alert">
          {t.question.fillIn}
        </p>
      )}
      <div>
        <Button type="submit" look="primary">
          {t.question.send}
        </Button>
      </div>
    </form>
  );
}

interface FieldProps {
  field: FormField;
  value: Value | undefined;
  bad: boolean;
  onChange(value: Value): void;
}

function Field({ field, value, bad, onChange }: FieldProps) {
  const t = useText();
  const id = useId();
  const label = (
    <>
      {field.label} {field.required && <span className="question-required">({t.question.required})</span>}
    </>
  );
  if (field.type === "checkbox") {
    return (
      <label className="question-check">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} /> {label}
      </label>
    );
  }
  if (field.type === "multi_select") {
    const chosen = Array.isArray(value) ? value : [];
    return (
      <fieldset>
        <legend>{label}</legend>
        {field.options.map((option) => (
          <label key={option.id} className="question-check">
            <input
              type="checkbox"
              checked={chosen.includes(option.value)}
              onChange={(event) =>
                onChange(
                  event.target.checked ? [...chosen, option.value] : chosen.filter((one) => one !== option.value),
                )
              }
            />{" "}
            {option.label}
          </label>
        ))}
      </fieldset>
    );
  }
  const shared = {
    id,
    className: "field",
    value: typeof value === "string" ? value : "",
    "aria-invalid": bad,
    "aria-required": field.required,
    placeholder: field.placeholder,
  };
  return (
    <div>
      <label htmlFor={id}>{label}</label>
      {field.type === "select" ? (
        <select {...shared} onChange={(event) => onChange(event.target.value)}>
          <option value="">{t.question.choose}</option>
          {field.options.map((option) => (
            <option key={option.id} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : field.type === "textarea" ? (
        <textarea {...shared} rows={3} dir="auto" onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input
          {...shared}
          dir="auto"
          type={field.type === "number" ? "number" : field.type === "date" ? "date" : "text"}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </div>
  );
}
