/** The types of the server's answers and of requests to it. */

import type { components } from './rest';

// `jlpm rest:types` writes ./rest from openapi.yaml, which describes each field.
type Schemas = components['schemas'];

export type Phase = Schemas['Phase'];
export type ITarget = Schemas['Target'];
export type IWorkerCounts = Schemas['WorkerCounts'];
export type IClock = Schemas['Clock'];
export type ILoss = Schemas['Loss'];
export type IGpuReading = Schemas['GpuReading'];
/** A cluster; times are epoch seconds, memory is in bytes with 0 for unknown. */
export type ICluster = Schemas['Cluster'];
export type IClusterEvent = Schemas['Event'];
export type IJob = Schemas['Job'];
export type IWorker = Schemas['Worker'];
export type OptionValue = Schemas['OptionValue'];
export type IOption = Schemas['Option'];
export type IOptionsSchema = Schemas['Options'];
export type IProfile = Schemas['Profile'];
export type ILiveValues = Schemas['LiveValues'];
export type IInside = Schemas['Inside'];
export type IProfileProblem = Schemas['FileProblem'];
export type IEnvironment = Schemas['Environment'];
export type TargetRequest = Schemas['TargetRequest'];
export type IStartRequest = Schemas['Start'];
export type IScriptRequest = Schemas['Trial'];
export type IScript = Schemas['Script'];
export type IJobScript = Schemas['JobScript'];
export type ISurveyedSystem = Schemas['SurveyedSystem'];
export type ISurveyedQueue = Schemas['SurveyedQueue'];
export type ISetUpRequest = Schemas['SetUp'];
export type IProposedProfile = Schemas['ProposedProfile'];
export type ICapacity = Schemas['Capacity'];
export type IClientCode = Schemas['ClientCode'];
export type IBundledNotebook = Schemas['Notebook'];
export type ICopyRequest = Schemas['Copy'];
