#!/bin/bash
#KUBERNETES spec.restartPolicy = Never
#KUBERNETES metadata.namespace = data-science
#KUBERNETES spec.activeDeadlineSeconds = 28800
#KUBERNETES spec.containers[0].resources.limits.cpu = 8
#KUBERNETES spec.containers[0].resources.limits.memory = 32Gi
#KUBERNETES spec.containers[0].resources.limits.nvidia\.com/gpu = 1
#KUBERNETES spec.nodeSelector.nvidia\.com/gpu\.product = NVIDIA-A100-SXM4-40GB
#KUBERNETES spec.containers[0].image = registry.example.org/dask-gpu:2026.7
#KUBERNETES spec.volumes[0].name = home
#KUBERNETES spec.volumes[0].persistentVolumeClaim.claimName = home-ann
#KUBERNETES spec.containers[0].volumeMounts[0] = {"name":"home","mountPath":"/home/ann"}
#KUBERNETES spec.securityContext.runAsUser = 1000
#KUBERNETES spec.securityContext.fsGroup = 100
