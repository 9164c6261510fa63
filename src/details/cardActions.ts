/** What can be done with the cluster of a card. */

import type * as React from 'react';

import type { ICluster, TargetRequest } from '../model/tokens';
import type { ITimelineSource } from '../ui/timeline';

/** What the buttons of a card do. */
export interface ICardActions extends ITimelineSource {
  openDashboard: (cluster: ICluster) => void;
  openDetails: (cluster: ICluster) => void;
  connect: (cluster: ICluster) => void;
  /** Rejects with the server's refusal, which the card shows. */
  scale: (cluster: ICluster, target: TargetRequest) => Promise<void>;
  stop: (cluster: ICluster) => void;
  /** End one that does not confirm its end. */
  stopByForce: (cluster: ICluster) => void;
  /** Take one that somebody else started off the list. */
  detach: (cluster: ICluster) => void;
  forget: (cluster: ICluster) => void;
  startAgain: (cluster: ICluster) => void;
  /** Start a failed one again, at the field that may be the reason. */
  fix: (cluster: ICluster) => void;
  /** Replace a waiting request with an edited one. */
  resubmit: (cluster: ICluster) => void;
  /** Tell, or don't any more, when a cluster is ready. */
  notify: (cluster: ICluster) => Promise<void>;
  isAwaited: (cluster: ICluster) => boolean;
  showLog: (cluster: ICluster) => void;
  /** Open the menu of a card, at the pointer or else below a part of it. */
  showMore: (
    cluster: ICluster,
    anchor: HTMLElement,
    pointer?: { clientX: number; clientY: number }
  ) => void;
  /** Take the card's name by the hand, to drop it on a notebook. */
  drag: (cluster: ICluster, event: React.PointerEvent) => void;
  /** Whoever works with a card means its cluster. */
  touch: (cluster: ICluster) => void;
  /** What happened to a cluster while nobody looked; '' for nothing. */
  news: (cluster: ICluster) => string;
  dismissNews: (cluster: ICluster) => void;
  /** Whether the user has put aside the last loss of a cluster. */
  isLossDismissed: (cluster: ICluster) => boolean;
  dismissLoss: (cluster: ICluster) => void;
}
