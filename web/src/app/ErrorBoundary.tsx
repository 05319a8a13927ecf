/** Catches what a component throws. Invariant: the person sees words and a way on, never a blank page. */
import { Component, type ReactNode } from "react";
import { Button } from "../ui/Button";
import type { Text } from "../text/en";

interface Props {
  text: Text;
  children: ReactNode;
}

export class ErrorBoundary extends Component<Props, { failed: string | null }> {
  override state = { failed: null };

  static getDerivedStateFromError(error: unknown) {
    return { failed: String(error) };
  }

  override render() {
    if (this.state.failed === null) return this.props.children;
    const { crashed } = this.props.text;
    return (
      <div className="notice notice-bad" role="alert">
        <div>
          <h3>{crashed.title}</h3>
          <p>{crashed.next}</p>
          <p>
            <code>{this.state.failed}</code>
          </p>
          <Button onClick={() => location.reload()}>{crashed.reload}</Button>
        </div>
      </div>
    );
  }
}
