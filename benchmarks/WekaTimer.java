/** Measures the seconds of Weka's CFS (best-first search) or ReliefF (all rows, 10 neighbors) on an ARFF file. */
import java.io.*;
import weka.attributeSelection.*;
import weka.core.Instances;

public class WekaTimer {
    public static void main(String[] arguments) throws Exception {
        Instances data = new Instances(new BufferedReader(new FileReader(arguments[0])));
        data.setClassIndex(data.numAttributes() - 1);
        double best = Double.MAX_VALUE;
        for (int repeat = 0; repeat < 3; repeat++) {
            long started = System.nanoTime();
            if (arguments[1].equals("cfs")) {
                CfsSubsetEval cfs = new CfsSubsetEval();
                cfs.setLocallyPredictive(false);
                cfs.buildEvaluator(data);
                int[] found = new BestFirst().search(cfs, data);
                System.out.println(java.util.Arrays.toString(found));
            } else {
                ReliefFAttributeEval relief = new ReliefFAttributeEval();
                relief.buildEvaluator(data);
            }
            best = Math.min(best, (System.nanoTime() - started) / 1e9);
        }
        System.out.println(best);
    }
}
