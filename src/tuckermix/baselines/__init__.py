"""The methods with which the paper compares, with the interface of `TuckerClustering`."""
