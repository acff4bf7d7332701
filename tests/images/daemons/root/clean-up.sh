#!/bin/bash
# There is no vhost0 from which the node would have to get its network back.
