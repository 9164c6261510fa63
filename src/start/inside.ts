/** The profiles of the dialog in a batch job: what the job has, and what takes further jobs. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { usesThisMachine } from './draft';
import type { IInside, IProfile } from '../model/tokens';
import { amount, moment } from '../model/words';

interface IGroup {
  /** Empty outside of a batch job, where there is one group. */
  heading: string;
  profiles: IProfile[];
}

/** The profiles under their headings, those of this job first. */
export function groupsOf(
  profiles: IProfile[],
  inside: IInside | null,
  trans: TranslationBundle
): IGroup[] {
  if (inside === null) {
    return [{ heading: '', profiles }];
  }
  const here = profiles.filter(usesThisMachine);
  const other = profiles.filter(takesNoJob);
  const queued = profiles.filter(
    item => !usesThisMachine(item) && !takesNoJob(item)
  );
  return [
    { heading: insideWords(inside, trans), profiles: here },
    { heading: queuedWords(queued, trans), profiles: queued },
    { heading: trans.__('Without a job'), profiles: other }
  ].filter(group => group.profiles.length > 0);
}

/** Whether a cluster waits in no queue and takes nothing of this job's either. */
function takesNoJob(profile: IProfile): boolean {
  return profile.backend === 'existing' || profile.simulated;
}

/** "Use this job's GPUs: 4 A100, until 14:00, no waiting". */
function insideWords(inside: IInside, trans: TranslationBundle): string {
  const { gpus, gpu_type, ends } = inside;
  const what =
    gpu_type === ''
      ? amount(gpus, 'GPUs', trans)
      : trans.__('%1 %2', gpus, gpu_type);
  if (gpus === 0) {
    return ends === null
      ? trans.__("Use this job's cores: no waiting")
      : trans.__("Use this job's cores: until %1, no waiting", moment(ends));
  }
  return ends === null
    ? trans.__("Use this job's GPUs: %1, no waiting", what)
    : trans.__(
        "Use this job's GPUs: %1, until %2, no waiting",
        what,
        moment(ends)
      );
}

function queuedWords(profiles: IProfile[], trans: TranslationBundle): string {
  return profiles.length === 1
    ? trans.__(
        'New jobs on %1: queued, charged in addition',
        profiles[0].title || profiles[0].name
      )
    : trans.__('New jobs: queued, charged in addition');
}
