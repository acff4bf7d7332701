#!/bin/config-api-client
