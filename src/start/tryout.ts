/** The quickest way to a first cluster: a few workers on the machine that runs Jupyter. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { IClustersModel, IProfile } from '../model/tokens';
import { amount } from '../model/words';

const PROFILE = 'local';
const WORKERS = 2;

/** The profile of this machine; undefined where a site has taken it away. */
export function profileHere(model: IClustersModel): IProfile | undefined {
  return model.profiles?.find(profile => profile.name === PROFILE);
}

/** How many workers to try, as far as the profile allows them. */
export function triedWorkers(profile: IProfile): number {
  return Math.min(WORKERS, profile.limits.workers ?? WORKERS);
}

/** "2 CPU workers" or "1 GPU". */
export function triedWords(
  profile: IProfile,
  trans: TranslationBundle
): string {
  const workers = triedWorkers(profile);
  return profile.unit === 'GPUs'
    ? amount(workers, profile.unit, trans)
    : trans._n('%1 CPU worker', '%1 CPU workers', workers);
}
