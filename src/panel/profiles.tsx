/** The sidebar's list of profiles: where a cluster can be started, and which files cannot be read. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IClustersModel, IProfile } from '../model/tokens';
import { foundProfiles, MANY_PROFILES, SearchField } from '../ui/search';
import { Failure } from './clusters';
import { Button } from '../ui/button';

interface IProfileListProps {
  model: IClustersModel;
  onStart: (profile: IProfile) => void;
  onSetUp: () => void;
  trans: TranslationBundle;
}

export function ProfileList(props: IProfileListProps): JSX.Element {
  const { model, trans } = props;
  const [wanted, setWanted] = React.useState('');
  if (model.profilesFailure !== null) {
    return (
      <Failure
        text={trans.__('The profiles cannot be shown.')}
        failure={model.profilesFailure}
        onRetry={() => void model.loadProfiles()}
        trans={trans}
      />
    );
  }
  if (model.profiles === null) {
    return (
      <p className="jp-gpucluster-Notice">{trans.__('Reading profiles…')}</p>
    );
  }
  return (
    <>
      {model.announcement && (
        <p className="jp-gpucluster-Notice">{model.announcement}</p>
      )}
      <Problems {...props} />
      <Unused {...props} />
      {model.profiles.length > MANY_PROFILES && (
        <SearchField
          label={trans.__('Search profiles')}
          value={wanted}
          onChange={setWanted}
        />
      )}
      {model.profiles.length === 0 && (
        <p className="jp-gpucluster-Notice">
          {trans.__('No profile can be used.')}
        </p>
      )}
      <ul className="jp-gpucluster-Profiles">
        {foundProfiles(model.profiles, wanted).map(profile => (
          <ProfileItem key={profile.name} profile={profile} {...props} />
        ))}
      </ul>
    </>
  );
}

function ProfileItem(
  props: IProfileListProps & { profile: IProfile }
): JSX.Element {
  const { profile, trans } = props;
  const title = profile.title || profile.name;
  return (
    <li className="jp-gpucluster-Profile">
      <div>
        <h3>{title}</h3>
        <p>{profile.unusable || profile.words || profile.summary}</p>
        <p className="jp-gpucluster-Profile-source">
          {profile.matches_host
            ? trans.__('%1, made for this host', profile.backend)
            : profile.backend}
        </p>
        <ProfileBadges profile={profile} trans={trans} />
      </div>
      <Button
        label={trans.__('Start…')}
        name={trans.__('Start on %1', title)}
        why={profile.unusable}
        onClick={() => props.onStart(profile)}
      />
    </li>
  );
}

/** What a user should know of all clusters of a profile before one is started. */
function ProfileBadges(props: {
  profile: IProfile;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { profile, trans } = props;
  return profile.encrypted === false ? (
    <ul className="jp-gpucluster-Badges" aria-label={trans.__('Remarks')}>
      <li className="jp-gpucluster-Badge">{trans.__('not encrypted')}</li>
    </ul>
  ) : null;
}

/** The batch systems whose commands are there, and that have no profile. */
function Unused(props: IProfileListProps): JSX.Element | null {
  const { model, trans } = props;
  return model.withoutProfile.length === 0 ? null : (
    <div className="jp-gpucluster-Notice" data-kind="found">
      <p>
        {trans.__(
          '%1 found, without a profile.',
          model.withoutProfile.join(', ')
        )}
      </p>
      <Button label={trans.__('Set up…')} onClick={props.onSetUp} />
    </div>
  );
}

function Problems(props: IProfileListProps): JSX.Element | null {
  const { model, trans } = props;
  if (model.problems.length === 0) {
    return null;
  }
  return (
    <div className="jp-gpucluster-Notice" data-kind="failure">
      <p>
        {trans._n(
          '%1 profile file cannot be used:',
          '%1 profile files cannot be used:',
          new Set(model.problems.map(problem => problem.file)).size
        )}
      </p>
      <ul>
        {model.problems.map(problem => (
          <li key={`${problem.file}:${problem.line}:${problem.column}`}>
            {problem.file}:{problem.line}:{problem.column}: {problem.message}
          </li>
        ))}
      </ul>
    </div>
  );
}
