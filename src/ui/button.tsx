/** The button of all views. */

import * as React from 'react';

interface IButtonProps {
  /** The text on it. */
  label: string;
  /** The text that tells it from the same button elsewhere; it contains the label. */
  name?: string;
  /** Whether it is what most users want next. */
  accept?: boolean;
  /** Whether Enter in a field of its form presses it. */
  submit?: boolean;
  /** What it does, shown under the pointer. */
  tip?: string;
  /** Why it cannot be used now; '' or missing if it can. */
  why?: string;
  expanded?: boolean;
  pressed?: boolean;
  menu?: boolean;
  onClick?: (event: React.MouseEvent<HTMLButtonElement>) => void;
}

/**
 * It keeps the focus when it cannot be used: a button that is truly disabled would drop it. Pressed
 * then, it says why: not all pointers hover.
 */
export const Button = React.forwardRef<HTMLButtonElement, IButtonProps>(
  (props, ref) => {
    const { why = '' } = props;
    const [asked, setAsked] = React.useState(false);
    return (
      <>
        <button
          ref={ref}
          type={props.submit ? 'submit' : 'button'}
          className={
            props.accept
              ? 'jp-gpucluster-Button jp-mod-accept'
              : 'jp-gpucluster-Button'
          }
          aria-label={props.name}
          aria-expanded={props.expanded}
          aria-pressed={props.pressed}
          aria-haspopup={props.menu ? 'menu' : undefined}
          aria-disabled={why !== ''}
          title={why || props.tip}
          onClick={event => {
            if (why === '') {
              props.onClick?.(event);
            } else {
              event.preventDefault();
              setAsked(true);
            }
          }}
          onBlur={() => setAsked(false)}
        >
          {props.label}
        </button>
        {asked && why !== '' && (
          <span className="jp-gpucluster-Button-why" role="status">
            {why}
          </span>
        )}
      </>
    );
  }
);
