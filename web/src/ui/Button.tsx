/** Buttons. Invariant: a button of only an icon has a name, which is also its tooltip. */
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { Icon, type IconName } from "./Icon";
import "./ui.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "normal" | "primary" | "danger" | "plain";
  small?: boolean;
  icon?: IconName;
  children: ReactNode;
}

export function Button({ look = "normal", small, icon, className, children, ...rest }: ButtonProps) {
  const classes = ["button", look !== "normal" && `button-${look}`, small && "button-small", className];
  return (
    <button type="button" className={classes.filter(Boolean).join(" ")} {...rest}>
      {icon && <Icon name={icon} size={small ? 15 : 17} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  label: string;
  icon: IconName;
  small?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ label, icon, small, className, ...rest }: IconButtonProps) {
  const classes = ["button button-icon", small && "button-small", className];
  return (
    <button type="button" aria-label={label} title={label} className={classes.filter(Boolean).join(" ")} {...rest}>
      <Icon name={icon} size={small ? 16 : 19} />
    </button>
  );
}
